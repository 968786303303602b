/*
 * Calls every function of leveldb/c.h and prints what comes back. Compiled once against Debian's
 * header and run against both libraries: the outputs must be the same. Argument: an empty
 * directory.
 */
#include <leveldb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char path[4096];
static char* err = NULL;

static void show(const char* what) {
  /* The part before the second colon is the kind; what follows names paths and system calls. */
  if (err == NULL) {
    printf("%s: ok\n", what);
    return;
  }
  const char* colon = strchr(err, ':');
  printf("%s: error, %.*s\n", what, colon ? (int)(colon - err) : (int)strlen(err), err);
  leveldb_free(err);
  err = NULL;
}

static void bytes(const char* data, size_t length) {
  putchar('[');
  for (size_t i = 0; i < length; i++) {
    unsigned char c = (unsigned char)data[i];
    if (c >= 32 && c < 127)
      putchar(c);
    else
      printf("\\x%02x", c);
  }
  putchar(']');
}

static void get(leveldb_t* db, leveldb_readoptions_t* ro, const char* key, size_t keylen) {
  size_t length = 12345;
  char* value = leveldb_get(db, ro, key, keylen, &length, &err);
  printf("get ");
  bytes(key, keylen);
  printf(" = ");
  if (value == NULL)
    printf("null, length %zu", length);
  else
    bytes(value, length > 60 ? 60 : length);
  printf(", length %zu, %s\n", length, err ? err : "no error");
  leveldb_free(value);
}

static void visit_put(void* state, const char* k, size_t klen, const char* v, size_t vlen) {
  ++*(int*)state;
  printf("  put ");
  bytes(k, klen);
  bytes(v, vlen);
  printf("\n");
}

static void visit_delete(void* state, const char* k, size_t klen) {
  ++*(int*)state;
  printf("  delete ");
  bytes(k, klen);
  printf("\n");
}

static void scan(leveldb_t* db, leveldb_readoptions_t* ro) {
  leveldb_iterator_t* it = leveldb_create_iterator(db, ro);
  printf("fresh iterator valid %d\n", leveldb_iter_valid(it));
  for (leveldb_iter_seek_to_first(it); leveldb_iter_valid(it); leveldb_iter_next(it)) {
    size_t klen, vlen;
    const char* k = leveldb_iter_key(it, &klen);
    const char* v = leveldb_iter_value(it, &vlen);
    printf("  ");
    bytes(k, klen);
    bytes(v, vlen > 20 ? 20 : vlen);
    printf(" %zu\n", vlen);
  }
  leveldb_iter_get_error(it, &err);
  show("  end");
  printf(" backward:");
  for (leveldb_iter_seek_to_last(it); leveldb_iter_valid(it); leveldb_iter_prev(it)) {
    size_t klen;
    const char* k = leveldb_iter_key(it, &klen);
    bytes(k, klen);
  }
  printf("\n");
  leveldb_iter_seek(it, "b", 1);
  printf(" seek b valid %d", leveldb_iter_valid(it));
  if (leveldb_iter_valid(it)) {
    size_t klen;
    bytes(leveldb_iter_key(it, &klen), klen);
    leveldb_iter_prev(it);
    printf(" prev valid %d", leveldb_iter_valid(it));
  }
  leveldb_iter_seek(it, "\xff\xff\xff", 3);
  printf(" seek far valid %d\n", leveldb_iter_valid(it));
  leveldb_iter_destroy(it);
}

static int destroyed = 0;
static void count_destroyed(void* state) { destroyed += *(int*)state; }

/* Descending order. */
static int compare(void* state, const char* a, size_t alen, const char* b, size_t blen) {
  (void)state;
  size_t n = alen < blen ? alen : blen;
  int r = memcmp(a, b, n);
  if (r == 0) r = (alen > blen) - (alen < blen);
  return -r;
}
static const char* comparator_name(void* state) {
  (void)state;
  return "transcript.Descending";
}

static int filters_made = 0, filter_matches = 0;
static char* create_filter(void* state, const char* const* keys, const size_t* lengths, int n,
                           size_t* out) {
  (void)state;
  (void)keys;
  (void)lengths;
  filters_made += n > 0;
  *out = 4;
  char* filter = malloc(4);
  memcpy(filter, "fake", 4);
  return filter;
}
static uint8_t key_may_match(void* state, const char* key, size_t length, const char* filter,
                             size_t filter_length) {
  (void)state;
  (void)key;
  (void)length;
  filter_matches = filter_length == 4 && memcmp(filter, "fake", 4) == 0;
  return filter_matches;
}
static const char* filter_name(void* state) {
  (void)state;
  return "transcript.Filter";
}

static void subdir(char* out, const char* name) { sprintf(out, "%s/%s", path, name); }

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  strcpy(path, argv[1]);
  char name[5000], other[5000];
  subdir(name, "db");

  printf("version %d.%d\n", leveldb_major_version(), leveldb_minor_version());

  leveldb_options_t* options = leveldb_options_create();
  leveldb_env_t* env = leveldb_create_default_env();
  leveldb_cache_t* cache = leveldb_cache_create_lru(100000);
  leveldb_options_set_comparator(
      options, leveldb_comparator_create(&destroyed, NULL, compare, comparator_name));
  leveldb_options_destroy(options);

  options = leveldb_options_create();
  leveldb_options_set_env(options, env);
  leveldb_options_set_info_log(options, NULL);
  leveldb_options_set_cache(options, cache);
  leveldb_options_set_error_if_exists(options, 1);
  leveldb_options_set_paranoid_checks(options, 1);
  leveldb_options_set_write_buffer_size(options, 100000);
  leveldb_options_set_max_open_files(options, 10);
  leveldb_options_set_block_size(options, 1024);
  leveldb_options_set_block_restart_interval(options, 8);
  leveldb_options_set_max_file_size(options, 3 << 20);
  leveldb_options_set_compression(options, leveldb_no_compression);

  char* dir = leveldb_env_get_test_directory(env);
  printf("test directory %s\n", dir);
  leveldb_free(dir);

  leveldb_readoptions_t* ro = leveldb_readoptions_create();
  leveldb_readoptions_set_verify_checksums(ro, 1);
  leveldb_readoptions_set_fill_cache(ro, 0);
  leveldb_writeoptions_t* wo = leveldb_writeoptions_create();
  leveldb_writeoptions_set_sync(wo, 1);

  leveldb_destroy_db(options, name, &err);
  show("destroy nothing");
  leveldb_t* db = leveldb_open(options, name, &err);
  printf("open missing: %d %s\n", db != NULL,
         strstr(err, "does not exist (create_if_missing is false)") ? "as worded" : err);
  show("open missing");
  /* An earlier message is freed and replaced. */
  err = strdup("earlier");
  db = leveldb_open(options, name, &err);
  show("open missing again");
  subdir(other, "no/such/parent");
  leveldb_options_set_create_if_missing(options, 1);
  db = leveldb_open(options, other, &err);
  show("open below nothing");
  db = leveldb_open(options, name, &err);
  show("open");
  leveldb_t* second = leveldb_open(options, name, &err);
  printf("second %d\n", second != NULL);
  show("second open");

  get(db, ro, "foo", 3);
  leveldb_put(db, wo, "foo", 3, "hello", 5, &err);
  show("put");
  get(db, ro, "foo", 3);
  leveldb_put(db, wo, "empty", 5, "", 0, &err);
  leveldb_put(db, wo, "", 0, "empty key", 9, &err);
  leveldb_put(db, wo, "a\0b", 3, "zero\0in it", 10, &err);
  get(db, ro, "empty", 5);
  get(db, ro, "", 0);
  get(db, ro, "a\0b", 3);
  leveldb_delete(db, wo, "foo", 3, &err);
  show("delete");
  leveldb_delete(db, wo, "foo", 3, &err);
  show("delete again");
  get(db, ro, "foo", 3);

  leveldb_writebatch_t* batch = leveldb_writebatch_create();
  leveldb_write(db, wo, batch, &err);
  show("empty batch");
  leveldb_writebatch_put(batch, "foo", 3, "a", 1);
  leveldb_writebatch_clear(batch);
  leveldb_writebatch_put(batch, "bar", 3, "b", 1);
  leveldb_writebatch_put(batch, "box", 3, "c", 1);
  leveldb_writebatch_t* more = leveldb_writebatch_create();
  leveldb_writebatch_put(more, "box", 3, "later wins", 10);
  leveldb_writebatch_delete(more, "bar", 3);
  leveldb_writebatch_append(batch, more);
  leveldb_writebatch_destroy(more);
  leveldb_write(db, wo, batch, &err);
  show("batch");
  int operations = 0;
  leveldb_writebatch_iterate(batch, &operations, visit_put, visit_delete);
  printf("%d operations\n", operations);
  leveldb_writebatch_destroy(batch);
  get(db, ro, "foo", 3);
  get(db, ro, "bar", 3);
  get(db, ro, "box", 3);

  scan(db, ro);

  const leveldb_snapshot_t* snapshot = leveldb_create_snapshot(db);
  const leveldb_snapshot_t* twin = leveldb_create_snapshot(db);
  leveldb_iterator_t* held = leveldb_create_iterator(db, ro);
  leveldb_put(db, wo, "box", 3, "new", 3, &err);
  leveldb_put(db, wo, "zzz", 3, "after", 5, &err);
  leveldb_readoptions_set_snapshot(ro, snapshot);
  get(db, ro, "box", 3);
  get(db, ro, "zzz", 3);
  leveldb_readoptions_set_snapshot(ro, NULL);
  get(db, ro, "box", 3);
  leveldb_release_snapshot(db, snapshot);
  leveldb_readoptions_set_snapshot(ro, twin);
  get(db, ro, "box", 3);
  leveldb_readoptions_set_snapshot(ro, NULL);
  leveldb_release_snapshot(db, twin);
  leveldb_iter_seek(held, "box", 3);
  size_t vlen;
  const char* v = leveldb_iter_value(held, &vlen);
  printf("held iterator: ");
  bytes(v, vlen);
  printf("\n");
  leveldb_iter_destroy(held);

  char key[64];
  char* big = malloc(500);
  memset(big, 'v', 500);
  for (int i = 0; i < 3000; i++) {
    sprintf(key, "key%06d", i);
    leveldb_put(db, wo, key, strlen(key), big, 500, &err);
    if (i == 0) leveldb_writeoptions_set_sync(wo, 0);
  }
  show("many puts");
  leveldb_compact_range(db, NULL, 0, NULL, 0);
  leveldb_compact_range(db, "a", 1, NULL, 0);
  leveldb_compact_range(db, NULL, 0, "z", 1);
  leveldb_compact_range(db, "a", 1, "z", 1);
  const char* starts[2] = {"key000000", "nothing"};
  const char* limits[2] = {"key999999", "nothing2"};
  size_t start_lengths[2] = {9, 7}, limit_lengths[2] = {9, 8};
  uint64_t sizes[2] = {1, 1};
  leveldb_approximate_sizes(db, 2, starts, start_lengths, limits, limit_lengths, sizes);
  printf("sizes: %s, %s\n", sizes[0] > 1400000 && sizes[0] < 1700000 ? "about 1.5 MB" : "off",
         sizes[1] == 0 ? "0" : "off");
  const char* properties[] = {"nosuchprop",
                              "leveldb.nosuchprop",
                              "leveldb.num-files-at-level0",
                              "leveldb.stats",
                              "leveldb.sstables",
                              "leveldb.approximate-memory-usage",
                              "leveldb.num-files-at-level7",
                              "leveldb.num-files-at-level"};
  for (size_t i = 0; i < sizeof(properties) / sizeof(properties[0]); i++) {
    char* value = leveldb_property_value(db, properties[i]);
    printf("%s: %s\n", properties[i], value ? "known" : "unknown");
    leveldb_free(value);
  }
  get(db, ro, "key000077", 9);

  leveldb_close(db);
  db = leveldb_open(options, name, &err);
  printf("exists: %s\n", strstr(err, "exists (error_if_exists is true)") ? "as worded" : err);
  show("open existing");
  leveldb_options_set_error_if_exists(options, 0);

  leveldb_comparator_t* comparator =
      leveldb_comparator_create(&(int){100}, count_destroyed, compare, comparator_name);
  leveldb_options_set_comparator(options, comparator);
  db = leveldb_open(options, name, &err);
  show("open under another comparator");
  leveldb_options_destroy(options);

  /* A custom comparator and a custom filter. */
  int weight = 1000;
  leveldb_filterpolicy_t* policy = leveldb_filterpolicy_create(
      &weight, count_destroyed, create_filter, key_may_match, filter_name);
  options = leveldb_options_create();
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_options_set_comparator(options, comparator);
  leveldb_options_set_filter_policy(options, policy);
  subdir(other, "descending");
  db = leveldb_open(options, other, &err);
  show("open descending");
  for (int i = 0; i < 10; i++) {
    sprintf(key, "%c%d", 'a' + i % 3, i);
    leveldb_put(db, wo, key, 2, key, 2, &err);
  }
  scan(db, ro);
  leveldb_compact_range(db, NULL, 0, NULL, 0);
  get(db, ro, "a3", 2);
  get(db, ro, "a4", 2);
  printf("filters made %d, found again %d\n", filters_made > 0, filter_matches);
  scan(db, ro);
  leveldb_close(db);
  leveldb_options_destroy(options);
  printf("destroyed before %d\n", destroyed);
  leveldb_comparator_destroy(comparator);
  printf("destroyed %d\n", destroyed);
  leveldb_filterpolicy_destroy(policy);
  printf("destroyed %d\n", destroyed);

  /* Bloom, reopen, repair, destroy. */
  policy = leveldb_filterpolicy_create_bloom(10);
  options = leveldb_options_create();
  leveldb_options_set_filter_policy(options, policy);
  leveldb_options_set_cache(options, cache);
  leveldb_options_set_compression(options, leveldb_snappy_compression);
  db = leveldb_open(options, name, &err);
  show("reopen with bloom");
  get(db, ro, "key000077", 9);
  get(db, ro, "box", 3);
  get(db, ro, "none", 4);
  leveldb_compact_range(db, NULL, 0, NULL, 0);
  get(db, ro, "key000077", 9);
  get(db, ro, "none", 4);
  leveldb_destroy_db(options, name, &err);
  show("destroy while open");
  get(db, ro, "key000077", 9);
  leveldb_close(db);
  leveldb_repair_db(options, name, &err);
  show("repair");
  db = leveldb_open(options, name, &err);
  show("open repaired");
  get(db, ro, "key002999", 9);
  get(db, ro, "foo", 3);
  leveldb_close(db);
  leveldb_destroy_db(options, name, &err);
  show("destroy");
  db = leveldb_open(options, name, &err);
  show("open destroyed");
  leveldb_options_destroy(options);
  leveldb_filterpolicy_destroy(policy);
  leveldb_cache_destroy(cache);
  leveldb_env_destroy(env);
  leveldb_readoptions_destroy(ro);
  leveldb_writeoptions_destroy(wo);
  leveldb_free(NULL);
  free(big);
  return 0;
}
