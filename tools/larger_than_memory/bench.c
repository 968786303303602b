/* Loads a database and reads it: op/s, device reads and bytes for each operation, from
 * /proc/self/io and the block device's counters. Built once for LevelDB's API (LevelDB, Terrace)
 * and once for RocksDB's. Usage: bench NAME DIRECTORY ENTRIES STEP..., STEP being fill,
 * waitcompact, get, multiget, seek or scan; DEVICE_STAT names the device's /sys/block/X/stat. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef ROCKSDB
#include <rocksdb/c.h>
#define DB(name) rocksdb_##name
#else
#ifdef TERRACE
#include <terrace/c.h>
#else
#include <leveldb/c.h>
#endif
#define DB(name) leveldb_##name
#endif

/* Keys of one call of multi_get. */
#define MANY 64

typedef DB(t) db_t;
static const char* engine;
static uint64_t state = 88172645463325252ull;
static uint64_t Random(uint64_t below) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return state % below;
}

static double Now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

/* Reads of the device, and bytes that this process had read from it and written to it. */
static void Io(double* reads, double* read_bytes, double* write_bytes) {
  char line[300];
  long long number;
  *reads = *read_bytes = *write_bytes = 0;
  FILE* file = fopen("/proc/self/io", "r");
  while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
    if (sscanf(line, "read_bytes: %lld", &number) == 1) *read_bytes = number;
    if (sscanf(line, "write_bytes: %lld", &number) == 1) *write_bytes = number;
  }
  if (file != NULL) fclose(file);
  const char* stat = getenv("DEVICE_STAT");
  if (stat != NULL && (file = fopen(stat, "r")) != NULL) {
    if (fscanf(file, "%lld", &number) == 1) *reads = number;
    fclose(file);
  }
}

static double began, reads0, read0, written0;
static void Begin(void) {
  Io(&reads0, &read0, &written0);
  began = Now();
}
static void End(const char* step, double operations) {
  double seconds = Now() - began, reads, read, written;
  Io(&reads, &read, &written);
  printf("%-10s %-7s %11.0f op/s  %8.3f reads/op  %9.0f bytes/op  %8.1f MB written\n", engine, step,
         operations / seconds, (reads - reads0) / operations, (read - read0) / operations,
         (written - written0) / 1e6);
  fflush(stdout);
}

static void Die(const char* what, const char* err) {
  fprintf(stderr, "%s: %s: %s\n", engine, what, err);
  exit(1);
}

/* Half of it compresses away. */
static void Value(char* value, uint64_t number) {
  uint64_t x = number * 0x9e3779b97f4a7c15ull + 1;
  for (int i = 0; i < 50; i++) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    value[i] = value[50 + i] = ' ' + x % 95;
  }
}

static void Key(char* key, uint64_t number) {
  snprintf(key, 17, "%016llu", (unsigned long long)number);
}

/* Looks up MANY random keys in one call, or one after the other where there is none. */
static void GetMany(db_t* db, DB(readoptions_t) * read, uint64_t entries, char** err) {
  char keys[MANY][17], *values[MANY];
  size_t lengths[MANY];
  for (int i = 0; i < MANY; i++) Key(keys[i], Random(entries));
#if defined(TERRACE) || defined(ROCKSDB)
  const char* list[MANY];
  size_t sizes[MANY];
  for (int i = 0; i < MANY; i++) list[i] = keys[i], sizes[i] = 16;
#ifdef TERRACE
  terrace_multi_get(db, read, MANY, list, sizes, values, lengths, err);
#else
  char* errors[MANY];
  rocksdb_multi_get(db, read, MANY, list, sizes, values, lengths, errors);
  for (int i = 0; i < MANY; i++)
    if (errors[i] != NULL) *err = errors[i];
#endif
#else
  for (int i = 0; i < MANY; i++) values[i] = DB(get)(db, read, keys[i], 16, &lengths[i], err);
#endif
  if (*err != NULL) Die("multi_get", *err);
  for (int i = 0; i < MANY; i++) free(values[i]);
}

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  engine = argv[1];
  uint64_t entries = strtoull(argv[3], NULL, 10);
  double limit = getenv("SECONDS_EACH") ? atof(getenv("SECONDS_EACH")) : 6;
  char *err = NULL, key[17], value[100];
  DB(options_t)* options = DB(options_create)();
  DB(options_set_create_if_missing)(options, 1);
  DB(options_set_compression)(options, 1);
#ifdef ROCKSDB
  rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
  rocksdb_block_based_options_set_block_cache(table, rocksdb_cache_create_lru(8 << 20));
  rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom_full(10));
  rocksdb_options_set_block_based_table_factory(options, table);
#else
  leveldb_options_set_filter_policy(options, leveldb_filterpolicy_create_bloom(10));
#endif
  db_t* db = DB(open)(options, argv[2], &err);
  if (err != NULL) Die("open", err);
  DB(readoptions_t)* read = DB(readoptions_create)();
  DB(writeoptions_t)* write = DB(writeoptions_create)();
  for (int i = 4; i < argc; i++) {
    const char* step = argv[i];
    uint64_t done = 0;
    size_t length;
    Begin();
    if (strcmp(step, "fill") == 0) {
      for (; done < entries; done++) {
        uint64_t number = done * 2654435761u % entries; /* a prime: each once */
        Key(key, number), Value(value, number);
        DB(put)(db, write, key, 16, value, 100, &err);
        if (err != NULL) Die("put", err);
      }
    } else if (strcmp(step, "waitcompact") == 0) {
      DB(compact_range)(db, NULL, 0, NULL, 0);
      done = 1;
    } else if (strcmp(step, "get") == 0) {
      for (double start = Now(); done % 64 != 0 || Now() - start < limit / 2;
           done++) { /* Tables open, caches fill. */
        Key(key, Random(entries));
        free(DB(get)(db, read, key, 16, &length, &err));
      }
      done = 0;
      Begin();
      for (; done % 64 != 0 || Now() - began < limit; done++) {
        Key(key, Random(entries));
        free(DB(get)(db, read, key, 16, &length, &err));
        if (err != NULL) Die("get", err);
      }
    } else if (strcmp(step, "multiget") == 0) {
      for (double start = Now(); Now() - start < limit / 2; done++)
        GetMany(db, read, entries, &err);
      done = 0;
      Begin();
      for (; Now() - began < limit; done += MANY) GetMany(db, read, entries, &err);
    } else if (strcmp(step, "seek") == 0) {
      for (double start = Now(); done % 64 != 0 || Now() - start < limit / 2; done++) {
        Key(key, Random(entries));
        free(DB(get)(db, read, key, 16, &length, &err));
      }
      done = 0;
      Begin();
      for (; done % 16 != 0 || Now() - began < limit; done++) {
        Key(key, Random(entries));
        DB(iterator_t)* iter = DB(create_iterator)(db, read);
        DB(iter_seek)(iter, key, 16);
        for (int n = 0; n < 10 && DB(iter_valid)(iter); n++) DB(iter_next)(iter);
        DB(iter_destroy)(iter);
      }
    } else if (strcmp(step, "scan") == 0) {
      DB(iterator_t)* iter = DB(create_iterator)(db, read);
      for (DB(iter_seek_to_first)(iter); DB(iter_valid)(iter); DB(iter_next)(iter)) done++;
      DB(iter_get_error)(iter, &err);
      if (err != NULL) Die("scan", err);
      DB(iter_destroy)(iter);
    } else {
      return 2;
    }
    End(step, done);
  }
  DB(close)(db);
  return 0;
}
