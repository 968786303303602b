# The target leveldb::leveldb, by LevelDB's own name.
get_filename_component(_leveldb_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET leveldb::leveldb)
  add_library(leveldb::leveldb SHARED IMPORTED)
  set_target_properties(leveldb::leveldb PROPERTIES
    IMPORTED_LOCATION "${_leveldb_prefix}/lib/libleveldb.so.1"
    IMPORTED_SONAME "libleveldb.so.1"
    INTERFACE_INCLUDE_DIRECTORIES "${_leveldb_prefix}/include")
endif()
unset(_leveldb_prefix)
