// A program in C as others write it: built against an installed library by pkg-config and by CMake.
#include <leveldb/c.h>
#include <stdio.h>
#include <string.h>

int main(int count, char** arguments) {
  if (count != 2) return 2;
  char* error = NULL;
  leveldb_options_t* options = leveldb_options_create();
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_t* db = leveldb_open(options, arguments[1], &error);
  leveldb_writeoptions_t* write = leveldb_writeoptions_create();
  leveldb_readoptions_t* read = leveldb_readoptions_create();
  size_t length = 0;
  char* value = NULL;
  if (error == NULL) leveldb_put(db, write, "key", 3, "from C", 6, &error);
  if (error == NULL) value = leveldb_get(db, read, "key", 3, &length, &error);
  if (error != NULL) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  printf("%.*s %d.%d\n", (int)length, value, leveldb_major_version(), leveldb_minor_version());
  leveldb_free(value);
  leveldb_readoptions_destroy(read);
  leveldb_writeoptions_destroy(write);
  leveldb_options_destroy(options);
  leveldb_close(db);
  return 0;
}
