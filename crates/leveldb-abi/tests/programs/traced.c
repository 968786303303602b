// What tests/dropin/traces.rs expects in a trace, by the C API.

#include <leveldb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void check(char* error) {
  if (error == NULL) return;
  fprintf(stderr, "%s\n", error);
  exit(1);
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  char* error = NULL;
  leveldb_options_t* options = leveldb_options_create();
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_t* db = leveldb_open(options, argv[1], &error);
  check(error);
  leveldb_writeoptions_t* write = leveldb_writeoptions_create();
  leveldb_readoptions_t* read = leveldb_readoptions_create();

  leveldb_put(db, write, "a", 1, "secret", 6, &error);
  check(error);
  leveldb_writeoptions_set_sync(write, 1);
  leveldb_delete(db, write, "b", 1, &error);
  check(error);
  leveldb_writebatch_t* batch = leveldb_writebatch_create();
  leveldb_writebatch_put(batch, "c", 1, "", 0);
  leveldb_writebatch_delete(batch, "d", 1);
  leveldb_write(db, write, batch, &error);
  check(error);
  size_t length = 0;
  free(leveldb_get(db, read, "missing", 7, &length, &error));
  check(error);

  // A child's end writes nothing to the trace.
  const pid_t child = fork();
  if (child == 0) exit(0);
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) return 3;

  leveldb_iterator_t* iter = leveldb_create_iterator(db, read);
  leveldb_iter_seek(iter, "a", 1);
  leveldb_iter_next(iter);
  leveldb_iter_prev(iter);
  leveldb_iter_seek_to_first(iter);
  leveldb_iter_seek_to_last(iter);
  leveldb_iter_prev(iter);
  leveldb_iter_destroy(iter);

  // Some programs end without closing anything.
  if (argc > 2 && strcmp(argv[2], "exit") == 0) return 0;
  leveldb_writebatch_destroy(batch);
  leveldb_readoptions_destroy(read);
  leveldb_writeoptions_destroy(write);
  leveldb_close(db);
  leveldb_options_destroy(options);
  return 0;
}
