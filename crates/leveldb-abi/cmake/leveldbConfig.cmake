# The target leveldb::leveldb, by LevelDB's own name: the shared library, or with leveldb_USE_STATIC_LIBS the static one.
get_filename_component(_leveldb_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET leveldb::leveldb)
  if(leveldb_USE_STATIC_LIBS)
    add_library(leveldb::leveldb STATIC IMPORTED)
    set_target_properties(leveldb::leveldb PROPERTIES
      IMPORTED_LOCATION "${_leveldb_prefix}/lib/libleveldb.a"
      IMPORTED_LINK_INTERFACE_LANGUAGES "CXX"
      INTERFACE_LINK_LIBRARIES "stdc++;pthread;dl;m")
  else()
    add_library(leveldb::leveldb SHARED IMPORTED)
    set_target_properties(leveldb::leveldb PROPERTIES
      IMPORTED_LOCATION "${_leveldb_prefix}/lib/libleveldb.so.1"
      IMPORTED_SONAME "libleveldb.so.1")
  endif()
  set_target_properties(leveldb::leveldb PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${_leveldb_prefix}/include")
endif()
unset(_leveldb_prefix)
