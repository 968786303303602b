// MariaDB's embedded server as a library that can be started more than once in a process.
//
// The library keeps its state in variables that are not set back: started a second time, it
// crashes. So every start has a copy of the library to itself, with variables of its own. Copies
// stay in memory until the process ends.

#ifndef LAB_INNODB_LIBRARY_H_
#define LAB_INNODB_LIBRARY_H_

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include <mariadb/server/mysql.h>

#include "../common/failure.h"

namespace lab {

class Library {
 public:
  Library() : handle_(LoadCopy(Path())) {}
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

 private:
  static constexpr char kName[] = "libmariadbd.so";

  // Where the loader finds the library. What it loads for this is never used, and never unloaded.
  static std::string Path() {
    static const std::string path = [] {
      void* handle = dlopen(kName, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
      if (handle == nullptr) throw Failure(dlerror());
      link_map* map = nullptr;
      if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) throw Failure(dlerror());
      return std::string(map->l_name);
    }();
    return path;
  }

  static void* LoadCopy(const std::string& path) {
    const int from = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (from < 0) throw Failure::Of("open", path);
    struct stat info;
    if (fstat(from, &info) != 0) throw Failure::Of("stat", path);
    const int copy = memfd_create(kName, MFD_CLOEXEC);
    if (copy < 0) throw Failure::Of("memfd_create", kName);
    for (off_t at = 0; at < info.st_size;) {
      if (sendfile(copy, from, &at, static_cast<size_t>(info.st_size - at)) <= 0)
        throw Failure::Of("copy", path);
    }
    ::close(from);
    // Its symbols must not be bound to those of an earlier copy. The descriptor stays open: the
    // loader knows what it has loaded by name, and would take a copy behind the same number for the
    // one before.
    const std::string name = "/proc/self/fd/" + std::to_string(copy);
    void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (handle == nullptr) throw Failure(dlerror());
    return handle;
  }

  template <typename Function>
  Function Find(const char* name) const {
    void* symbol = dlsym(handle_, name);
    if (symbol == nullptr) throw Failure(dlerror());
    return reinterpret_cast<Function>(symbol);
  }

  void* const handle_;

 public:
#define LAB_FUNCTION(short_name, name) \
  const decltype(&::name) short_name = Find<decltype(&::name)>(#name)
  LAB_FUNCTION(server_init, mysql_server_init);
  LAB_FUNCTION(server_end, mysql_server_end);
  LAB_FUNCTION(thread_init, mysql_thread_init);
  LAB_FUNCTION(thread_end, mysql_thread_end);
  LAB_FUNCTION(init, mysql_init);
  LAB_FUNCTION(real_connect, mysql_real_connect);
  LAB_FUNCTION(close, mysql_close);
  LAB_FUNCTION(error, mysql_error);
  LAB_FUNCTION(query, mysql_query);
  LAB_FUNCTION(store_result, mysql_store_result);
  LAB_FUNCTION(free_result, mysql_free_result);
  LAB_FUNCTION(stmt_init, mysql_stmt_init);
  LAB_FUNCTION(stmt_prepare, mysql_stmt_prepare);
  LAB_FUNCTION(stmt_close, mysql_stmt_close);
  LAB_FUNCTION(stmt_error, mysql_stmt_error);
  LAB_FUNCTION(stmt_errno, mysql_stmt_errno);
  LAB_FUNCTION(stmt_bind_param, mysql_stmt_bind_param);
  LAB_FUNCTION(stmt_bind_result, mysql_stmt_bind_result);
  LAB_FUNCTION(stmt_execute, mysql_stmt_execute);
  LAB_FUNCTION(stmt_fetch, mysql_stmt_fetch);
  LAB_FUNCTION(stmt_fetch_column, mysql_stmt_fetch_column);
  LAB_FUNCTION(stmt_free_result, mysql_stmt_free_result);
#undef LAB_FUNCTION
};

}  // namespace lab

#endif  // LAB_INNODB_LIBRARY_H_
