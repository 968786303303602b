/* Uses every function of terrace/c.h. Argument: an empty directory. */
#define _GNU_SOURCE
#include <leveldb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <terrace/c.h>
#include <unistd.h>

#define CHECK(condition)                                      \
  do {                                                        \
    if (!(condition)) {                                       \
      fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
      exit(1);                                                \
    }                                                         \
  } while (0)

static char* err = NULL;

static void Ok(int line) {
  if (err == NULL) return;
  fprintf(stderr, "line %d: %s\n", line, err);
  exit(1);
}
#define OK Ok(__LINE__)

#define REFUSED(words)                                \
  do {                                                \
    CHECK(err != NULL && strstr(err, words) != NULL); \
    leveldb_free(err);                                \
    err = NULL;                                       \
  } while (0)

static int lines = 0, destroyed = 0;

static void Log(void* state, const char* line, size_t length) {
  CHECK(state == &lines && length > 0 && line[length - 1] != '\n');
  lines++;
}

static void Destroy(void* state) {
  CHECK(state == &lines);
  destroyed++;
}

static int Same(const char* value, size_t length, const char* expected) {
  return value != NULL && length == strlen(expected) && memcmp(value, expected, length) == 0;
}

static int Contains(char* text, const char* part) {
  CHECK(text != NULL);
  const int found = strstr(text, part) != NULL;
  if (!found) fprintf(stderr, "%s\n", text);
  leveldb_free(text);
  return found;
}

static void Fill(leveldb_t* db) {
  leveldb_writeoptions_t* write = leveldb_writeoptions_create();
  for (int i = 0; i < 1000; i++) {
    char key[16];
    snprintf(key, sizeof(key), "key%04d", 2 * i);
    leveldb_put(db, write, key, strlen(key), key, strlen(key), &err);
    OK;
  }
  leveldb_writeoptions_destroy(write);
}

// Null pointers with a length, for which LevelDB reads address 0.
static void NullBytes(leveldb_t* db) {
  leveldb_writeoptions_t* write = leveldb_writeoptions_create();
  leveldb_readoptions_t* read = leveldb_readoptions_create();
  size_t length = 0;
  leveldb_put(db, write, NULL, 5, "v", 1, &err);
  REFUSED("key is null");
  leveldb_put(db, write, "k", 1, NULL, 5, &err);
  REFUSED("value is null");
  leveldb_delete(db, write, NULL, 5, &err);
  REFUSED("key is null");
  CHECK(leveldb_get(db, read, NULL, 5, &length, &err) == NULL);
  REFUSED("key is null");
  // An end or a value that is left out has no bytes.
  terrace_delete_range(db, write, "key0004", 7, NULL, 1, &err);
  REFUSED("limit key is null");
  terrace_delete_range(db, write, NULL, 1, "key0004", 7, &err);
  REFUSED("start key is null");
  terrace_compact_range(db, NULL, 1, NULL, 0, &err);
  REFUSED("start key is null");
  CHECK(!terrace_pop_first(db, write, NULL, 1, NULL, 0, NULL, NULL, NULL, NULL, &err));
  REFUSED("start key is null");
  CHECK(!terrace_compare_and_swap(db, write, "key0000", 7, "key0000", 7, NULL, 5, &err));
  REFUSED("new value is null");
  CHECK(!terrace_compare_and_swap(db, write, "new", 3, NULL, 5, "v", 1, &err));
  REFUSED("expected value is null");
  const char* keys[] = {"key0000", NULL};
  const size_t key_lengths[] = {7, 5};
  char* values[2];
  size_t lengths[2];
  terrace_multi_get(db, read, 2, keys, key_lengths, values, lengths, &err);
  REFUSED("key is null");
  leveldb_writebatch_t* batch = leveldb_writebatch_create();
  leveldb_writebatch_put(batch, "refused", 7, NULL, 5);
  leveldb_writebatch_delete(batch, "key0004", 7);
  leveldb_writebatch_t* copy = leveldb_writebatch_create();
  leveldb_writebatch_append(copy, batch);
  leveldb_write(db, write, copy, &err);
  REFUSED("value is null");
  leveldb_writebatch_clear(copy);
  leveldb_write(db, write, copy, &err);
  OK;
  leveldb_writebatch_destroy(copy);
  leveldb_writebatch_destroy(batch);
  leveldb_readoptions_destroy(read);
  leveldb_writeoptions_destroy(write);
}

static void Read(leveldb_t* db) {
  leveldb_readoptions_t* read = leveldb_readoptions_create();
  leveldb_iterator_t* it = leveldb_create_iterator(db, read);
  size_t length = 0;
  terrace_iter_seek_for_prev(it, "key0101", 7);
  CHECK(leveldb_iter_valid(it));
  CHECK(memcmp(leveldb_iter_key(it, &length), "key0100", 7) == 0 && length == 7);
  terrace_iter_seek_for_prev(it, "key0102", 7);
  CHECK(leveldb_iter_valid(it) && memcmp(leveldb_iter_key(it, &length), "key0102", 7) == 0);
  /* To the key that is shown, too. */
  leveldb_iter_seek_to_last(it);
  leveldb_iter_prev(it);
  const char* own = leveldb_iter_key(it, &length);
  terrace_iter_seek_for_prev(it, own, length);
  CHECK(leveldb_iter_valid(it) && memcmp(leveldb_iter_key(it, &length), "key1996", 7) == 0);
  leveldb_iter_seek_to_last(it);
  own = leveldb_iter_key(it, &length);
  leveldb_iter_seek(it, own, length);
  CHECK(leveldb_iter_valid(it) && memcmp(leveldb_iter_key(it, &length), "key1998", 7) == 0);
  leveldb_iter_prev(it);
  own = leveldb_iter_key(it, &length);
  leveldb_iter_seek(it, own, length - 1);
  CHECK(leveldb_iter_valid(it) && memcmp(leveldb_iter_key(it, &length), "key1990", 7) == 0);
  terrace_iter_seek_for_prev(it, "a", 1);
  CHECK(!leveldb_iter_valid(it));
  terrace_iter_seek_for_prev(NULL, "a", 1);
  leveldb_iter_destroy(it);

  const char* keys[] = {"key0000", "none", "key1998", NULL};
  const size_t key_lengths[] = {7, 4, 7, 0};
  char* values[4];
  size_t lengths[4];
  terrace_multi_get(db, read, 4, keys, key_lengths, values, lengths, &err);
  OK;
  CHECK(lengths[0] == 7 && memcmp(values[0], "key0000", 7) == 0);
  CHECK(values[1] == NULL && lengths[1] == 0 && values[3] == NULL);
  CHECK(lengths[2] == 7 && memcmp(values[2], "key1998", 7) == 0);
  for (int i = 0; i < 4; i++) leveldb_free(values[i]);
  terrace_multi_get(db, NULL, 0, NULL, NULL, values, lengths, &err);
  OK;
  terrace_multi_get(db, NULL, 2, NULL, NULL, values, lengths, &err);
  CHECK(err != NULL && values[0] == NULL && values[1] == NULL);
  CHECK(strcmp(err, terrace_last_error()) == 0);
  leveldb_free(err);
  err = NULL;
  terrace_multi_get(db, NULL, 4, keys, key_lengths, NULL, lengths, &err);
  REFUSED("values is null");
  terrace_multi_get(db, NULL, 4, keys, key_lengths, values, NULL, &err);
  REFUSED("value_lengths is null");
  size_t in_and_out[] = {7, 4, 7, 0};
  terrace_multi_get(db, read, 4, keys, in_and_out, values, in_and_out, &err);
  OK;
  CHECK(in_and_out[0] == 7 && in_and_out[1] == 0 && in_and_out[2] == 7);
  CHECK(memcmp(values[2], "key1998", 7) == 0);
  for (int i = 0; i < 4; i++) leveldb_free(values[i]);

  terrace_pinned_t* pinned = terrace_get_pinned(db, read, "key0004", 7, &err);
  OK;
  CHECK(memcmp(terrace_pinned_value(pinned, &length), "key0004", 7) == 0 && length == 7);
  terrace_compact_range(db, NULL, 0, NULL, 0, &err);
  OK;
  CHECK(memcmp(terrace_pinned_value(pinned, NULL), "key0004", 7) == 0);
  terrace_pinned_destroy(pinned);
  pinned = terrace_get_pinned(db, read, "key0006", 7, &err);
  CHECK(memcmp(terrace_pinned_value(pinned, &length), "key0006", 7) == 0 && length == 7);
  terrace_pinned_destroy(pinned);
  CHECK(terrace_get_pinned(db, read, "key0005", 7, &err) == NULL);
  OK;
  leveldb_readoptions_destroy(read);
}

/* Changes a byte in the first table of the directory. */
static void Damage(const char* name) {
  for (int number = 1; number < 100; number++) {
    char file[1000];
    snprintf(file, sizeof(file), "%s/%06d.ldb", name, number);
    FILE* table = fopen(file, "r+b");
    if (table == NULL) continue;
    CHECK(fseek(table, 40, SEEK_SET) == 0);
    const int byte = fgetc(table);
    CHECK(byte != EOF && fseek(table, 40, SEEK_SET) == 0 && fputc(byte ^ 1, table) != EOF);
    CHECK(fclose(table) == 0);
    return;
  }
  CHECK(!"a table");
}

static void Checkpoint(leveldb_t* db, const char* dir) {
  char name[1000];
  snprintf(name, sizeof(name), "%s/copies/first", dir);
  terrace_checkpoint(db, NULL, &err);
  CHECK(err != NULL);
  leveldb_free(err);
  err = NULL;
  terrace_checkpoint(db, name, &err);
  OK;
  terrace_checkpoint(db, name, &err);
  CHECK(err != NULL && strstr(err, "not empty") != NULL);
  leveldb_free(err);
  err = NULL;
  leveldb_options_t* options = leveldb_options_create();
  leveldb_t* copy = leveldb_open(options, name, &err);
  OK;
  uint64_t sequence = 0;
  CHECK(terrace_stat(copy, "sequence", &sequence) && sequence == 1000);
  terrace_delete_range(copy, NULL, "key0004", 7, "key0008", 7, &err);
  OK;
  leveldb_readoptions_t* read = leveldb_readoptions_create();
  size_t length = 0;
  CHECK(leveldb_get(copy, read, "key0006", 7, &length, &err) == NULL);
  OK;
  char* value = leveldb_get(copy, read, "key0008", 7, &length, &err);
  CHECK(value != NULL && length == 7);
  leveldb_free(value);
  terrace_delete_range(copy, NULL, NULL, 0, NULL, 0, &err);
  OK;
  CHECK(leveldb_get(copy, read, "key0008", 7, &length, &err) == NULL);
  OK;
  leveldb_readoptions_destroy(read);
  leveldb_close(copy);
  leveldb_options_destroy(options);
}

static char* Append(void* state, const char* value, size_t length, size_t* new_length) {
  if (state == NULL) return NULL;
  *new_length = length + 1;
  char* longer = malloc(length + 1);
  if (length > 0) memcpy(longer, value, length);
  longer[length] = *(const char*)state;
  return longer;
}

/* A program without memory: a length, and no value. */
static char* Starved(void* state, const char* value, size_t length, size_t* new_length) {
  (void)state, (void)value;
  *new_length = length + 1;
  return NULL;
}

static int Has(leveldb_t* db, const char* key, const char* expected) {
  leveldb_readoptions_t* read = leveldb_readoptions_create();
  size_t length = 0;
  char* value = leveldb_get(db, read, key, strlen(key), &length, &err);
  OK;
  leveldb_readoptions_destroy(read);
  const int same = expected == NULL ? value == NULL : Same(value, length, expected);
  leveldb_free(value);
  return same;
}

static void Updates(leveldb_t* db) {
  char more = '+';
  CHECK(terrace_insert_if_absent(db, NULL, "u", 1, "1", 1, &err) == 1);
  CHECK(terrace_insert_if_absent(db, NULL, "u", 1, "2", 1, &err) == 0);
  CHECK(terrace_compare_and_swap(db, NULL, "u", 1, "2", 1, "3", 1, &err) == 0);
  CHECK(terrace_compare_and_swap(db, NULL, "u", 1, "1", 1, "3", 1, &err) == 1);
  terrace_update(db, NULL, "u", 1, &more, Append, &err);
  OK;
  CHECK(Has(db, "u", "3+"));
  terrace_update(db, NULL, "v", 1, &more, Append, &err);
  CHECK(Has(db, "v", "+"));
  terrace_update(db, NULL, "v", 1, NULL, Starved, &err);
  REFUSED("new value is null");
  CHECK(Has(db, "v", "+"));
  terrace_update(db, NULL, "absent", 6, NULL, Starved, &err);
  REFUSED("new value is null");
  CHECK(Has(db, "absent", NULL));
  terrace_update(db, NULL, "v", 1, NULL, Append, &err);
  CHECK(Has(db, "v", NULL));
  CHECK(terrace_compare_and_swap(db, NULL, "u", 1, "3+", 2, NULL, 0, &err) == 1);
  CHECK(Has(db, "u", NULL));
  CHECK(terrace_increment(db, NULL, "w", 1, 40, &err) == 40);
  CHECK(terrace_increment(db, NULL, "w", 1, -50, &err) == -10);
  OK;
  CHECK(terrace_increment(db, NULL, "key0000", 7, 1, &err) == 0);
  REFUSED("8 bytes");
  char *key = NULL, *value = NULL;
  size_t keylen = 0, length = 0;
  CHECK(terrace_pop_first(db, NULL, "q", 1, "r", 1, &key, &keylen, &value, &length, &err) == 0 &&
        key == NULL);
  leveldb_put(db, NULL, "q1", 2, "one", 3, &err);
  leveldb_put(db, NULL, "q2", 2, "two", 3, &err);
  leveldb_put(db, NULL, "q3", 2, "three", 5, &err);
  CHECK(terrace_pop_first(db, NULL, "q", 1, "r", 1, &key, &keylen, &value, &length, &err) == 1);
  CHECK(Same(key, keylen, "q1") && Same(value, length, "one"));
  leveldb_free(key);
  leveldb_free(value);
  CHECK(terrace_pop_last(db, NULL, "q", 1, "r", 1, &key, &keylen, &value, &length, &err) == 1);
  CHECK(Same(key, keylen, "q3") && Same(value, length, "three"));
  leveldb_free(key);
  leveldb_free(value);
  CHECK(terrace_pop_last(db, NULL, "q", 1, "r", 1, NULL, NULL, NULL, NULL, &err) == 1);
  leveldb_delete(db, NULL, "w", 1, &err);
  OK;
}

static uint8_t Count(void* state, const char* key, size_t keylen, const char* value,
                     size_t length) {
  CHECK(keylen > 0 && key != NULL && value != NULL && length < 100);
  return ++*(int*)state < 3;
}

static void Transactions(leveldb_t* db) {
  CHECK(terrace_transaction_begin(db, 4, 0, &err) == NULL);
  REFUSED("flags");
  for (int flags = 0; flags < 4; flags++) {
    terrace_transaction_t* mine = terrace_transaction_begin(db, flags, 1000, &err);
    OK;
    size_t length = 0;
    CHECK(terrace_transaction_get_for_update(mine, "t", 1, &length, &err) == NULL);
    terrace_transaction_put(mine, "t", 1, "mine", 4, &err);
    terrace_transaction_set_savepoint(mine, &err);
    terrace_transaction_delete(mine, "t", 1, &err);
    terrace_transaction_rollback_to_savepoint(mine, &err);
    OK;
    terrace_transaction_rollback_to_savepoint(mine, &err);
    REFUSED("savepoint");
    char* value = terrace_transaction_get(mine, "t", 1, &length, &err);
    CHECK(Same(value, length, "mine"));
    leveldb_free(value);
    CHECK(Has(db, "t", NULL));
    int count = 0;
    terrace_transaction_scan(mine, NULL, 0, NULL, 0, &count, Count, &err);
    CHECK(count == 3);
    count = 0;
    terrace_transaction_scan(mine, "t", 1, "u", 1, &count, Count, &err);
    CHECK(count == 1);
    terrace_transaction_t* other = terrace_transaction_begin(db, flags, 1000, &err);
    OK;
    value = terrace_transaction_get_for_update(other, "t", 1, &length, &err);
    CHECK(value == NULL);
    if (flags & terrace_transaction_locking) REFUSED("lock");
    OK;
    terrace_transaction_put(other, "x", 1, "other", 5, &err);
    CHECK(terrace_transaction_commit(mine, NULL, &err) == 0);
    OK;
    CHECK(terrace_transaction_commit(mine, NULL, &err) == 2);
    REFUSED("ended");
    terrace_transaction_destroy(mine);
    const int refused = terrace_transaction_commit(other, NULL, &err);
    CHECK(refused == !(flags & terrace_transaction_locking));
    if (refused) REFUSED("was written");
    OK;
    terrace_transaction_destroy(other);
    CHECK(Has(db, "t", "mine") && Has(db, "x", refused ? NULL : "other"));
    leveldb_delete(db, NULL, "t", 1, &err);
    leveldb_delete(db, NULL, "x", 1, &err);
    OK;
  }
}

static uint8_t FirstPrepared(void* state, const char* name, size_t namelen, size_t writes,
                             uint8_t overtaken) {
  CHECK(Same(name, namelen, "pay") && writes == 2 && !overtaken);
  ++*(int*)state;
  return 0;
}

/* A database of its own: every second one is decided after it was opened again. */
static uint8_t NoPrepared(void* state, const char* name, size_t namelen, size_t writes,
                          uint8_t overtaken) {
  (void)state, (void)name, (void)namelen, (void)writes, (void)overtaken;
  CHECK(!"a prepared transaction");
  return 0;
}

static void TwoPhases(const char* dir) {
  char name[1000];
  snprintf(name, sizeof(name), "%s/two phases", dir);
  leveldb_options_t* options = leveldb_options_create();
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_t* db = leveldb_open(options, name, &err);
  OK;
  terrace_transaction_t* mine = terrace_transaction_begin(db, 0, 0, &err);
  for (int again = 0; again < 2; again++) {
    CHECK(terrace_transaction_prepare(mine, "pay", 3, &err) == 2);
    REFUSED("prepared_transactions");
    CHECK(terrace_transaction_prepare(mine, NULL, 3, &err) == 2);
    REFUSED("name");
  }
  terrace_prepared_list(db, NULL, NoPrepared, &err);
  REFUSED("prepared_transactions");
  terrace_transaction_put(mine, "a", 1, "0", 1, &err);
  CHECK(terrace_transaction_commit(mine, NULL, &err) == 0);
  OK;
  CHECK(Has(db, "a", "0"));
  terrace_transaction_destroy(mine);
  terrace_options_set_prepared_transactions(options, 1);
  for (int round = 0; round < 4; round++) {
    terrace_close(db, &err);
    OK;
    db = leveldb_open(options, name, &err);
    OK;
    mine = terrace_transaction_begin(db, 0, 0, &err);
    terrace_transaction_t* late = terrace_transaction_begin(db, 0, 0, &err);
    terrace_transaction_put(mine, "a", 1, round < 2 ? "1" : "2", 1, &err);
    terrace_transaction_delete(mine, "b", 1, &err);
    OK;
    CHECK(terrace_transaction_prepare(mine, "pay", 3, &err) == 0);
    OK;
    CHECK(terrace_transaction_prepare(mine, "pay", 3, &err) == 2);
    REFUSED("ended");
    terrace_transaction_destroy(mine);
    int count = 0;
    terrace_prepared_list(db, &count, FirstPrepared, &err);
    OK;
    CHECK(count == 1);
    mine = terrace_transaction_begin(db, 0, 0, &err);
    terrace_transaction_put(mine, "other", 5, "1", 1, &err);
    OK;
    CHECK(terrace_transaction_prepare(mine, "pay", 3, &err) == 2);
    REFUSED("already");
    CHECK(terrace_transaction_prepare(mine, "pay again", 9, &err) == 0);
    CHECK(terrace_prepared_rollback(db, "pay again", 9, &err));
    OK;
    terrace_transaction_destroy(mine);
    if (round % 2) {
      terrace_transaction_destroy(late);
      late = NULL;
      terrace_close(db, &err);
      OK;
      db = leveldb_open(options, name, &err);
      OK;
    }
    CHECK(!terrace_prepared_commit(db, "none", 4, &err));
    OK;
    CHECK(round < 2 ? terrace_prepared_commit(db, "pay", 3, &err)
                    : terrace_prepared_rollback(db, "pay", 3, &err));
    OK;
    CHECK(!terrace_prepared_rollback(db, "pay", 3, &err));
    OK;
    CHECK(Has(db, "a", "1"));
    if (late != NULL) {
      terrace_transaction_put(late, "a", 1, "late", 4, &err);
      CHECK(terrace_transaction_prepare(late, "late", 4, &err) == (round < 2));
      if (round < 2) REFUSED("was written");
      CHECK(terrace_prepared_rollback(db, "late", 4, &err) == (round >= 2));
      OK;
      terrace_transaction_destroy(late);
    }
  }
  terrace_close(db, &err);
  OK;
  leveldb_options_destroy(options);
}

static void Nulls(void) {
  uint64_t number;
  size_t length = 1;
  terrace_close(NULL, NULL);
  terrace_flush(NULL, &err);
  CHECK(err != NULL);
  leveldb_free(err);
  err = NULL;
  terrace_wait_idle(NULL, NULL);
  terrace_checkpoint(NULL, NULL, NULL);
  terrace_compact_range(NULL, NULL, 0, NULL, 0, NULL);
  terrace_delete_range(NULL, NULL, NULL, 0, NULL, 0, NULL);
  CHECK(!terrace_compare_and_swap(NULL, NULL, NULL, 0, NULL, 0, NULL, 0, NULL));
  CHECK(!terrace_insert_if_absent(NULL, NULL, NULL, 0, NULL, 0, NULL));
  CHECK(!terrace_increment(NULL, NULL, NULL, 0, 1, NULL));
  terrace_update(NULL, NULL, NULL, 0, NULL, NULL, NULL);
  CHECK(!terrace_pop_first(NULL, NULL, NULL, 0, NULL, 0, NULL, NULL, NULL, NULL, NULL));
  CHECK(!terrace_pop_last(NULL, NULL, NULL, 0, NULL, 0, NULL, NULL, NULL, NULL, NULL));
  CHECK(terrace_transaction_begin(NULL, 0, 0, NULL) == NULL);
  CHECK(terrace_transaction_get(NULL, NULL, 0, NULL, NULL) == NULL);
  CHECK(terrace_transaction_get_for_update(NULL, NULL, 0, NULL, NULL) == NULL);
  terrace_transaction_scan(NULL, NULL, 0, NULL, 0, NULL, NULL, NULL);
  terrace_transaction_put(NULL, NULL, 0, NULL, 0, NULL);
  terrace_transaction_delete(NULL, NULL, 0, NULL);
  terrace_transaction_set_savepoint(NULL, NULL);
  terrace_transaction_rollback_to_savepoint(NULL, NULL);
  CHECK(terrace_transaction_commit(NULL, NULL, NULL) == 2);
  CHECK(terrace_transaction_prepare(NULL, NULL, 0, NULL) == 2);
  terrace_prepared_list(NULL, NULL, NULL, NULL);
  CHECK(!terrace_prepared_commit(NULL, NULL, 0, NULL));
  CHECK(!terrace_prepared_rollback(NULL, NULL, 0, NULL));
  terrace_options_set_prepared_transactions(NULL, 1);
  terrace_transaction_destroy(NULL);
  terrace_multi_get(NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL);
  CHECK(terrace_get_pinned(NULL, NULL, NULL, 0, NULL) == NULL);
  CHECK(terrace_pinned_value(NULL, &length) != NULL && length == 0);
  terrace_pinned_destroy(NULL);
  CHECK(terrace_stats_json(NULL) == NULL && !terrace_stat(NULL, NULL, &number));
  CHECK(terrace_verify(NULL, NULL) == NULL && terrace_verify_db(NULL, NULL, NULL) == NULL);
  CHECK(terrace_repair_db(NULL, NULL, NULL) == NULL);
  CHECK(terrace_report_problems(NULL) == 0 && terrace_report_problem(NULL, 0) == NULL);
  CHECK(terrace_report_json(NULL) == NULL);
  terrace_report_destroy(NULL);
  CHECK(terrace_logger_create(NULL, NULL, NULL) == NULL);
  terrace_logger_destroy(NULL);
  terrace_options_set_read_only(NULL, 1);
  terrace_options_set_table_filter_bits(NULL, 1);
  terrace_options_set_read_access(NULL, terrace_read_access_pread);
  terrace_options_set_mapped_log(NULL, 0);
  terrace_options_set_value_log(NULL, 1);
  terrace_options_set_zstd_dictionary(NULL, 4096);
  CHECK(terrace_options_set_compression(NULL, "lz4") == 0);
  CHECK(terrace_memory_budget_used(NULL) == 0);
  terrace_options_set_memory_budget(NULL, NULL);
  terrace_memory_budget_destroy(NULL);
}

/* The value files of a database after a put of 5,000 bytes and a flush. */
static uint64_t ValueFiles(const leveldb_options_t* options, const char* name) {
  leveldb_t* db = leveldb_open(options, name, &err);
  OK;
  leveldb_writeoptions_t* write = leveldb_writeoptions_create();
  char value[5000] = {1};
  leveldb_put(db, write, "large", 5, value, sizeof(value), &err);
  OK;
  leveldb_writeoptions_destroy(write);
  terrace_flush(db, &err);
  OK;
  uint64_t files = 0, used = 0;
  CHECK(terrace_stat(db, "value_files", &files) && terrace_stat(db, "value_bytes_used", &used));
  CHECK((used > 0) == (files > 0));
  leveldb_readoptions_t* read = leveldb_readoptions_create();
  size_t length = 0;
  char* found = leveldb_get(db, read, "large", 5, &length, &err);
  OK;
  CHECK(length == sizeof(value) && memcmp(found, value, length) == 0);
  leveldb_free(found);
  leveldb_readoptions_destroy(read);
  leveldb_close(db);
  leveldb_destroy_db(options, name, &err);
  OK;
  return files;
}

static void ValueLog(const char* dir) {
  char name[1000];
  snprintf(name, sizeof(name), "%s/values", dir);
  leveldb_options_t* options = leveldb_options_create();
  leveldb_options_set_create_if_missing(options, 1);
  CHECK(ValueFiles(options, name) == 0);
  setenv("TERRACE_VALUE_LOG", "4K", 1);
  CHECK(ValueFiles(options, name) > 0);
  terrace_options_set_value_log(options, 5001);
  CHECK(ValueFiles(options, name) == 0);
  terrace_options_set_value_log(options, 0);
  CHECK(ValueFiles(options, name) == 0);
  unsetenv("TERRACE_VALUE_LOG");
  terrace_options_set_value_log(options, 5000);
  CHECK(ValueFiles(options, name) > 0);
  leveldb_options_destroy(options);
}

/* Lack of memory for a value is an error, not a key without one. */
static void NoMemory(const char* dir) {
  char name[1000];
  snprintf(name, sizeof(name), "%s/no-memory", dir);
  leveldb_options_t* options = leveldb_options_create();
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_options_set_write_buffer_size(options, (size_t)256 << 20);
  leveldb_t* db = leveldb_open(options, name, &err);
  OK;
  leveldb_writeoptions_t* write = leveldb_writeoptions_create();
  leveldb_readoptions_t* read = leveldb_readoptions_create();
  const size_t size = (size_t)64 << 20;
  char* value = calloc(1, size);
  leveldb_put(db, write, "key", 3, value, size, &err);
  free(value);
  OK;

  unsigned long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  CHECK(file != NULL && fscanf(file, "%lu", &pages) == 1);
  fclose(file);
  struct rlimit before;
  CHECK(getrlimit(RLIMIT_AS, &before) == 0);
  struct rlimit limit = before;
  limit.rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE) + size / 4;
  CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
  size_t length = 1;
  CHECK(leveldb_get(db, read, "key", 3, &length, &err) == NULL);
  CHECK(setrlimit(RLIMIT_AS, &before) == 0);
  CHECK(length == 0);
  REFUSED("no memory for a copy of 67108864 bytes");
  value = leveldb_get(db, read, "key", 3, &length, &err);
  CHECK(value != NULL && length == size);
  OK;
  leveldb_free(value);
  leveldb_writeoptions_destroy(write);
  leveldb_readoptions_destroy(read);
  leveldb_options_destroy(options);
  leveldb_close(db);
}

/* Whether LevelDB refuses the database: its MANIFEST bears another name. */
static int IsExtended(const char* name) {
  char path[1100];
  char text[64] = "";
  snprintf(path, sizeof(path), "%s/CURRENT", name);
  FILE* file = fopen(path, "r");
  CHECK(file != NULL && fgets(text, sizeof(text), file) != NULL);
  fclose(file);
  text[strcspn(text, "\n")] = 0;
  snprintf(path, sizeof(path), "%s/%s", name, text);
  file = fopen(path, "r");
  CHECK(file != NULL);
  char bytes[4096];
  const size_t size = fread(bytes, 1, sizeof(bytes), file);
  fclose(file);
  return memmem(bytes, size, "terrace.extended.", 17) != NULL;
}

static void Compressions(const char* dir) {
  char name[1000];
  snprintf(name, sizeof(name), "%s/compressions", dir);
  leveldb_options_t* options = leveldb_options_create();
  leveldb_options_set_create_if_missing(options, 1);
  CHECK(terrace_options_set_compression(options, "lzma") == 0);
  CHECK(terrace_options_set_compression(options, NULL) == 0);
  const char* const names[] = {"snappy", "lz4", "none", "lz4"};
  for (int i = 0; i < 4; i++) {
    CHECK(terrace_options_set_compression(options, names[i]) == 1);
    /* The later setting counts. */
    if (i == 3) leveldb_options_set_compression(options, leveldb_snappy_compression);
    leveldb_t* db = leveldb_open(options, name, &err);
    OK;
    leveldb_writeoptions_t* write = leveldb_writeoptions_create();
    leveldb_put(db, write, "key", 3, names[i], strlen(names[i]), &err);
    OK;
    leveldb_writeoptions_destroy(write);
    leveldb_compact_range(db, NULL, 0, NULL, 0);
    uint64_t extended = 2;
    CHECK(terrace_stat(db, "is_extended", &extended) == 1 && extended == (i == 1));
    leveldb_close(db);
    CHECK(IsExtended(name) == (i == 1));
  }
  terrace_options_set_zstd_dictionary(options, 7);
  CHECK(leveldb_open(options, name, &err) == NULL);
  REFUSED("zstd_dictionary");
  leveldb_options_destroy(options);
}

/* Whether files with the ending are mapped once something was written and read. */
static int Maps(const char* ending, const leveldb_options_t* options, const char* name) {
  leveldb_t* db = leveldb_open(options, name, &err);
  OK;
  leveldb_writeoptions_t* write = leveldb_writeoptions_create();
  leveldb_put(db, write, "zzz", 3, "", 0, &err);
  OK;
  leveldb_writeoptions_destroy(write);
  leveldb_readoptions_t* read = leveldb_readoptions_create();
  leveldb_iterator_t* iter = leveldb_create_iterator(db, read);
  leveldb_iter_seek_to_first(iter);
  CHECK(leveldb_iter_valid(iter));
  char line[2000];
  int found = 0;
  FILE* maps = fopen("/proc/self/maps", "r");
  CHECK(maps != NULL);
  while (fgets(line, sizeof(line), maps) != NULL) found |= strstr(line, ending) != NULL;
  fclose(maps);
  leveldb_iter_destroy(iter);
  leveldb_readoptions_destroy(read);
  leveldb_close(db);
  return found;
}

static void ReadAccess(leveldb_options_t* options, const char* name) {
  setenv("TERRACE_READ_ACCESS", "pread", 1);
  CHECK(!Maps(".ldb", options, name));
  terrace_options_set_read_access(options, terrace_read_access_mapped);
  CHECK(Maps(".ldb", options, name));
  terrace_options_set_read_access(options, terrace_read_access_pread);
  unsetenv("TERRACE_READ_ACCESS");
  CHECK(!Maps(".ldb", options, name));
  terrace_options_set_read_access(options, terrace_read_access_auto);
  CHECK(Maps(".ldb", options, name));
}

/* Where the file system takes mapped logs at all. */
static void MappedLog(leveldb_options_t* options, const char* name) {
  const int may_map = Maps(".log", options, name);
  setenv("TERRACE_MAPPED_LOG", "0", 1);
  CHECK(!Maps(".log", options, name));
  terrace_options_set_mapped_log(options, 1);
  CHECK(Maps(".log", options, name) == may_map);
  terrace_options_set_mapped_log(options, 0);
  unsetenv("TERRACE_MAPPED_LOG");
  CHECK(!Maps(".log", options, name));
  terrace_options_set_mapped_log(options, 1);
}

static int FilterDestroyed = 0;

static void CountDestroyed(void* state) { ++*(int*)state; }

/* The destructor of a filter uses the database, as it does where the last reference to an object of
 * the program's goes that writes. */
static leveldb_t* Destroying = NULL;

static void WriteDestroyed(void* state) {
  leveldb_writeoptions_t* write = leveldb_writeoptions_create();
  leveldb_put(Destroying, write, "destroyed", 9, "1", 1, NULL);
  leveldb_writeoptions_destroy(write);
  ++*(int*)state;
}

static void DestroyFilter(void* state) {
  (void)state;
  FilterDestroyed++;
}

static int Filter(void* state, const char* key, size_t keylen, const char* value, size_t vallen,
                  char** new_value, size_t* new_length) {
  (void)state;
  if (keylen == 4 && memcmp(key, "gone", 4) == 0) {
    return terrace_filter_remove;
  }
  if (keylen == 3 && memcmp(key, "new", 3) == 0 && vallen == 1 && value[0] == 'v') {
    *new_value = (char*)malloc(3);
    memcpy(*new_value, "NEW", 3);
    *new_length = 3;
    return terrace_filter_replace;
  }
  if (keylen == 7 && memcmp(key, "starved", 7) == 0) {
    *new_length = 1;
    return terrace_filter_replace;
  }
  return terrace_filter_keep;
}

/* Destructors run once, whatever is wrong, and without a lock. */
static void Destructors(leveldb_t* db) {
  int destroyed = 0;
  terrace_options_set_compaction_filter(NULL, &destroyed, Filter, CountDestroyed);
  CHECK(destroyed == 1);
  leveldb_options_t* options = leveldb_options_create();
  terrace_options_set_compaction_filter(options, &destroyed, NULL, CountDestroyed);
  CHECK(destroyed == 2);
  terrace_options_set_compaction_filter(options, &destroyed, Filter, CountDestroyed);
  CHECK(destroyed == 2);
  leveldb_options_destroy(options);
  CHECK(destroyed == 3);
  terrace_keyspace_t* keyspace = terrace_keyspace_create(db, NULL, "d", NULL, &err);
  OK;
  terrace_keyspace_set_compaction_filter(keyspace, &destroyed, NULL, CountDestroyed, &err);
  REFUSED("filter is null");
  CHECK(destroyed == 4);
  Destroying = db;
  for (int i = 0; i < 2; i++) {
    terrace_keyspace_set_compaction_filter(keyspace, &destroyed, Filter, WriteDestroyed, &err);
    OK;
    CHECK(destroyed == 4 + i);
  }
  terrace_keyspace_put(keyspace, NULL, "k", 1, "v", 1, terrace_ttl_default, &err);
  OK;
  CHECK(terrace_keyspace_drop(db, NULL, "d", &err) == 1);
  OK;
  CHECK(destroyed == 6);
  CHECK(Has(db, "destroyed", "1"));
  terrace_keyspace_set_compaction_filter(keyspace, &destroyed, Filter, CountDestroyed, &err);
  CHECK(err != NULL && destroyed == 7);
  leveldb_free(err);
  err = NULL;
  terrace_keyspace_release(keyspace);
}

/* Whether a value from a keyspace is this text; null for none. */
static int Holds(const terrace_keyspace_t* keyspace, const char* key, const char* text) {
  char* err = NULL;
  size_t length = 99;
  char* value = terrace_keyspace_get(keyspace, NULL, key, strlen(key), &length, &err);
  OK;
  int holds = text == NULL ? value == NULL && length == 0
                           : value != NULL && length == strlen(text) && !memcmp(value, text, length);
  leveldb_free(value);
  return holds;
}

static void Keyspaces(leveldb_t* db) {
  char* err = NULL;
  terrace_keyspace_options_t* options = terrace_keyspace_options_create();
  terrace_keyspace_options_set_expiry(options, 1, terrace_ttl_default);
  terrace_keyspace_options_set_compression(options, leveldb_no_compression);
  terrace_keyspace_options_set_block_size(options, 8192);
  terrace_keyspace_options_set_filter_bits(options, 12);
  terrace_keyspace_t* keyspace = terrace_keyspace_create(db, NULL, "s", options, &err);
  OK;
  terrace_keyspace_t* inner = terrace_keyspace_create(db, keyspace, "in", NULL, &err);
  OK;
  CHECK(terrace_keyspace_create(db, NULL, "s", NULL, &err) == NULL && err != NULL);
  CHECK(terrace_keyspace_create(db, NULL, "a!b", NULL, &err) == NULL && err != NULL);
  CHECK(terrace_keyspace_create(db, NULL, NULL, NULL, &err) == NULL && err != NULL);
  CHECK(terrace_keyspace_create(NULL, NULL, "x", NULL, &err) == NULL && err != NULL);
  CHECK(terrace_keyspace_open(db, NULL, "none", NULL, &err) == NULL && err != NULL);
  CHECK(terrace_keyspace_open(db, keyspace, "in", options, &err) == NULL && err != NULL);
  leveldb_free(err);
  err = NULL;
  terrace_keyspace_t* again = terrace_keyspace_open(db, NULL, "s", options, &err);
  OK;
  char* names = terrace_keyspace_list(db, NULL, &err);
  OK;
  CHECK(strcmp(names, "s\n") == 0);
  leveldb_free(names);
  names = terrace_keyspace_list(db, keyspace, &err);
  CHECK(strcmp(names, "in\n") == 0);
  leveldb_free(names);

  terrace_keyspace_put(keyspace, NULL, "a", 1, "value", 5, terrace_ttl_default, &err);
  OK;
  terrace_keyspace_put(again, NULL, "b", 1, "value", 5, 3600 * 1000, &err);
  terrace_keyspace_put(again, NULL, "c", 1, "value", 5, terrace_ttl_never, &err);
  terrace_keyspace_put(again, NULL, "d", 1, "", 0, 3600 * 1000, &err);
  OK;
  terrace_keyspace_put(inner, NULL, "e", 1, "value", 5, 1000, &err);
  CHECK(err != NULL && strstr(err, "without expiry") != NULL);
  leveldb_free(err);
  err = NULL;
  CHECK(Holds(keyspace, "a", "value") && Holds(keyspace, "b", "value") && Holds(keyspace, "d", ""));
  CHECK(Holds(keyspace, "e", NULL));
  size_t length = 0;
  char* raw = leveldb_get(db, NULL, "!s!b", 4, &length, &err);
  OK;
  CHECK(length == 21 && memcmp(raw, "value", 5) == 0);
  leveldb_free(raw);

  char *key, *stored;
  size_t key_length, stored_length;
  terrace_keyspace_entry(keyspace, "f", 1, "of a batch", 10, 3600 * 1000, &key, &key_length, &stored,
                         &stored_length, &err);
  OK;
  CHECK(key_length == 4 && memcmp(key, "!s!f", 4) == 0 && stored_length == 26);
  leveldb_put(db, NULL, key, key_length, stored, stored_length, &err);
  OK;
  leveldb_free(key);
  leveldb_free(stored);
  CHECK(Holds(keyspace, "f", "of a batch"));

  leveldb_iterator_t* iter = terrace_keyspace_create_iterator(keyspace, NULL);
  char seen[16] = "";
  for (leveldb_iter_seek(iter, "b", 1); leveldb_iter_valid(iter); leveldb_iter_next(iter)) {
    const char* at = leveldb_iter_key(iter, &length);
    CHECK(length == 1);
    strncat(seen, at, 1);
  }
  CHECK(strcmp(seen, "bcdf") == 0);
  terrace_iter_seek_for_prev(iter, "bb", 2);
  CHECK(leveldb_iter_valid(iter) && *leveldb_iter_key(iter, &length) == 'b');
  CHECK(leveldb_iter_value(iter, &length) != NULL && length == 5);
  leveldb_iter_seek_to_first(iter);
  CHECK(leveldb_iter_valid(iter) && *leveldb_iter_key(iter, &length) == 'a');
  leveldb_iter_get_error(iter, &err);
  OK;
  leveldb_iter_destroy(iter);

  terrace_keyspace_set_compaction_filter(keyspace, NULL, Filter, DestroyFilter, &err);
  OK;
  terrace_keyspace_put(keyspace, NULL, "gone", 4, "v", 1, 3600 * 1000, &err);
  terrace_keyspace_put(keyspace, NULL, "new", 3, "v", 1, 3600 * 1000, &err);
  terrace_keyspace_put(keyspace, NULL, "starved", 7, "v", 1, 3600 * 1000, &err);
  OK;
  terrace_flush(db, &err);
  OK;
  leveldb_compact_range(db, NULL, 0, NULL, 0);
  terrace_keyspace_put(keyspace, NULL, "gone twice", 10, "v", 1, 1, &err);
  terrace_flush(db, &err);
  leveldb_compact_range(db, NULL, 0, NULL, 0);
  CHECK(Holds(keyspace, "gone", NULL) && Holds(keyspace, "new", "NEW"));
  CHECK(Holds(keyspace, "starved", "v"));

  terrace_keyspace_delete(keyspace, NULL, "a", 1, &err);
  terrace_keyspace_delete_range(keyspace, NULL, "c", 1, "e", 1, &err);
  OK;
  CHECK(Holds(keyspace, "a", NULL) && Holds(keyspace, "c", NULL) && Holds(keyspace, "f", "of a batch"));
  CHECK(terrace_keyspace_drop(db, NULL, "s", &err) == 1);
  OK;
  CHECK(terrace_keyspace_drop(db, NULL, "s", &err) == 0 && err == NULL);
  CHECK(terrace_keyspace_get(keyspace, NULL, "f", 1, &length, &err) == NULL && err != NULL);
  leveldb_free(err);
  err = NULL;
  iter = terrace_keyspace_create_iterator(keyspace, NULL);
  CHECK(!leveldb_iter_valid(iter));
  leveldb_iter_get_error(iter, &err);
  CHECK(err != NULL);
  leveldb_free(err);
  err = NULL;
  leveldb_iter_destroy(iter);
  terrace_keyspace_release(inner);
  terrace_keyspace_release(again);
  terrace_keyspace_release(keyspace);
  terrace_keyspace_release(NULL);
  terrace_keyspace_options_destroy(options);
  terrace_keyspace_options_set_expiry(NULL, 1, 0);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  char name[1000], log[1100];
  snprintf(name, sizeof(name), "%s/db", argv[1]);
  snprintf(log, sizeof(log), "%s/LOG", name);
  CHECK(terrace_version()[0] != 0 && terrace_last_error()[0] == 0);
  Nulls();
  TwoPhases(argv[1]);
  ValueLog(argv[1]);
  NoMemory(argv[1]);
  Compressions(argv[1]);

  leveldb_logger_t* logger = terrace_logger_create(&lines, Destroy, Log);
  leveldb_options_t* options = leveldb_options_create();
  terrace_options_set_compaction_filter(NULL, NULL, Filter, NULL);
  terrace_options_set_compaction_filter(options, NULL, Filter, DestroyFilter);
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_options_set_info_log(options, logger);
  terrace_options_set_table_filter_bits(options, 12);
  terrace_memory_budget_t* budget = terrace_memory_budget_create(8 << 20);
  terrace_options_set_memory_budget(options, budget);
  leveldb_t* db = leveldb_open(options, name, &err);
  OK;
  terrace_options_set_memory_budget(options, NULL);
  Fill(db);
  CHECK(terrace_memory_budget_used(budget) > 10000);
  uint64_t bytes = 0;
  CHECK(terrace_stat(db, "memory_budget_bytes", &bytes) && bytes == 8 << 20);
  terrace_memory_budget_destroy(budget);
  NullBytes(db);
  Read(db);
  terrace_flush(db, &err);
  OK;
  terrace_wait_idle(db, &err);
  OK;
  CHECK(lines > 0);
  FILE* written = fopen(log, "r");
  CHECK(written == NULL);

  uint64_t sequence = 0;
  CHECK(terrace_stat(db, "sequence", &sequence) && sequence == 1000);
  CHECK(!terrace_stat(db, "no such number", &sequence) && !terrace_stat(db, NULL, &sequence));
  CHECK(Contains(terrace_stats_json(db), "\"sequence\":1000"));
  terrace_report_t* report = terrace_verify(db, &err);
  OK;
  CHECK(terrace_report_problems(report) == 0 && terrace_report_problem(report, 0) == NULL);
  CHECK(Contains(terrace_report_json(report), "\"entries\":1000"));
  terrace_report_destroy(report);
  CHECK(terrace_verify_db(options, name, &err) == NULL && err != NULL);
  leveldb_free(err);
  err = NULL;
  Checkpoint(db, argv[1]);
  Updates(db);
  Transactions(db);
  Keyspaces(db);
  Destructors(db);
  terrace_close(db, &err);
  OK;
  CHECK(FilterDestroyed == 1);

  terrace_options_set_read_only(options, 1);
  db = leveldb_open(options, name, &err);
  OK;
  leveldb_put(db, NULL, "a", 1, "b", 1, &err);
  CHECK(err != NULL && strncmp(err, "Not implemented: ", 17) == 0);
  leveldb_free(err);
  err = NULL;
  leveldb_compact_range(db, NULL, 0, NULL, 0);
  CHECK(strncmp(terrace_last_error(), "Not implemented: ", 17) == 0);
  leveldb_close(db);
  terrace_options_set_read_only(options, 0);

  ReadAccess(options, name);
  MappedLog(options, name);
  Damage(name);
  report = terrace_verify_db(options, name, &err);
  OK;
  CHECK(terrace_report_problems(report) == 1 &&
        strstr(terrace_report_problem(report, 0), ".ldb: ") != NULL);
  CHECK(terrace_report_problem(report, 1) == NULL);
  terrace_report_destroy(report);
  report = terrace_repair_db(options, name, &err);
  OK;
  CHECK(terrace_report_problems(report) == 1);
  CHECK(Contains(terrace_report_json(report), "\"moved\":["));
  CHECK(Contains(terrace_report_json(report), "\"log_entries\":"));
  terrace_report_destroy(report);
  report = terrace_verify_db(options, name, &err);
  OK;
  CHECK(terrace_report_problems(report) == 0);
  terrace_report_destroy(report);

  terrace_options_set_table_filter_bits(options, 1000);
  CHECK(leveldb_open(options, name, &err) == NULL && err != NULL);
  leveldb_free(err);
  leveldb_options_destroy(options);
  CHECK(FilterDestroyed == 2);
  terrace_logger_destroy(logger);
  CHECK(destroyed == 1);
  puts("done");
  return 0;
}
