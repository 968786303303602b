// Pointers to nothing, and exceptions of callbacks, through the C API. Compiled once and run
// against both libraries: the outputs must be the same. Argument: an empty directory.
#include <leveldb/c.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

static int odd_pointers = 0;

// Language runtimes that check pointers, Go's for one, take low addresses for corruption.
static void Check(const void* pointer) {
  odd_pointers += reinterpret_cast<uintptr_t>(pointer) < 4096;
}

static int Compare(void*, const char* a, size_t alen, const char* b, size_t blen) {
  Check(a), Check(b);
  const int order = memcmp(a, b, alen < blen ? alen : blen);
  return order != 0 ? order : (alen > blen) - (alen < blen);
}

static const char* ComparatorName(void*) { return "edges"; }

static char* CreateFilter(void*, const char* const* keys, const size_t*, int count,
                          size_t* length) {
  for (int i = 0; i < count; i++) Check(keys[i]);
  *length = 1;
  return strdup("f");
}

static uint8_t KeyMayMatch(void*, const char* key, size_t, const char* filter, size_t) {
  Check(key), Check(filter);
  return 1;
}

static const char* FilterName(void*) { return "edges.filter"; }

static void Nothing(void*) {}

static void VisitPut(void*, const char* key, size_t, const char* value, size_t) {
  Check(key), Check(value);
}

static void VisitDelete(void*, const char* key, size_t) { Check(key); }

static void Throw(void*, const char*, size_t, const char*, size_t) {
  throw std::runtime_error("thrown");
}

static void Say(const char* what, char* error) {
  printf("%s: %s, %d odd pointers\n", what, error == nullptr ? "ok" : error, odd_pointers);
  leveldb_free(error);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string path = std::string(argv[1]) + "/db";
  char* error = nullptr;

  leveldb_options_t* options = leveldb_options_create();
  leveldb_comparator_t* comparator =
      leveldb_comparator_create(nullptr, Nothing, Compare, ComparatorName);
  leveldb_filterpolicy_t* filter =
      leveldb_filterpolicy_create(nullptr, Nothing, CreateFilter, KeyMayMatch, FilterName);
  leveldb_options_set_comparator(options, comparator);
  leveldb_options_set_filter_policy(options, filter);
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_t* db = leveldb_open(options, path.c_str(), &error);
  Say("open", error);

  leveldb_writeoptions_t* write = leveldb_writeoptions_create();
  leveldb_readoptions_t* read = leveldb_readoptions_create();
  for (int round = 0; round < 3; round++) {
    for (const char* key : {"", "a", "b"}) {
      error = nullptr;
      leveldb_put(db, write, key, strlen(key), "", 0, &error);
    }
    Say("put", error);
    size_t length = 1;
    char* value = leveldb_get(db, read, "", 0, &length, &error);
    printf("get: %d, %zu bytes\n", value != nullptr, length);
    leveldb_free(value);
    // In memory, then in tables, then in both.
    for (bool forward : {true, false}) {
      leveldb_iterator_t* iter = leveldb_create_iterator(db, read);
      int entries = 0;
      forward ? leveldb_iter_seek_to_first(iter) : leveldb_iter_seek_to_last(iter);
      for (; leveldb_iter_valid(iter);
           forward ? leveldb_iter_next(iter) : leveldb_iter_prev(iter)) {
        size_t key_length, value_length;
        Check(leveldb_iter_key(iter, &key_length));
        Check(leveldb_iter_value(iter, &value_length));
        entries += value_length == 0;
      }
      leveldb_iter_destroy(iter);
      printf("%d entries %s\n", entries, forward ? "forward" : "backward");
    }
    if (round == 0) leveldb_compact_range(db, nullptr, 0, nullptr, 0);
    Say("scans", nullptr);
  }

  leveldb_writebatch_t* batch = leveldb_writebatch_create();
  leveldb_writebatch_put(batch, "", 0, "", 0);
  leveldb_writebatch_delete(batch, "", 0);
  leveldb_writebatch_iterate(batch, nullptr, VisitPut, VisitDelete);
  Say("batch", nullptr);
  try {
    leveldb_writebatch_iterate(batch, nullptr, Throw, VisitDelete);
    printf("nothing came\n");
  } catch (const std::runtime_error& caught) { printf("caught: %s\n", caught.what()); }
  error = nullptr;
  leveldb_write(db, write, batch, &error);
  Say("write", error);
  leveldb_writebatch_destroy(batch);

  leveldb_readoptions_destroy(read);
  leveldb_writeoptions_destroy(write);
  leveldb_close(db);
  leveldb_options_destroy(options);
  leveldb_filterpolicy_destroy(filter);
  leveldb_comparator_destroy(comparator);
  return 0;
}
