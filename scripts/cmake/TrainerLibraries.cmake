# Every library as an imported target; Debian 12 ships them all. scripts/setup.sh installs them.
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(Protobuf 3.12 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PNG REQUIRED)
find_package(HDF5 REQUIRED COMPONENTS C)
find_package(glog REQUIRED)
find_package(gflags REQUIRED)

# trainer_library(<target> <header> <library>): a library without a CMake package of its own.
function(trainer_library target header library)
  string(REPLACE "::" "_" key ${target})
  find_path(${key}_INCLUDE ${header} REQUIRED)
  find_library(${key}_LIBRARY ${library} REQUIRED)
  add_library(${target} UNKNOWN IMPORTED)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${${key}_LIBRARY}
                        INTERFACE_INCLUDE_DIRECTORIES ${${key}_INCLUDE})
endfunction()
trainer_library(dnnl::dnnl dnnl.h dnnl)
trainer_library(lmdb::lmdb lmdb.h lmdb)
trainer_library(leveldb::leveldb leveldb/db.h leveldb)
trainer_library(turbojpeg::turbojpeg turbojpeg.h turbojpeg)
