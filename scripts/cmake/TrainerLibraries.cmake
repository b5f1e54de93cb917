# Every library as an imported target; Debian 12 ships them all. scripts/setup.sh installs them.
option(TRAINER_STATIC "Link static libraries where there are any, for a program that runs elsewhere" OFF)
if(TRAINER_STATIC)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a .so)
endif()
find_package(Threads REQUIRED)
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
trainer_library(jpeg::jpeg jpeglib.h jpeg)

# Without libtiff the program refuses TIFF images. A static program does not use libtiff, because
# its static library needs many others.
add_library(trainer_tiff INTERFACE)
add_library(trainer::tiff ALIAS trainer_tiff)
if(TRAINER_TIFF AND NOT TRAINER_STATIC)
  find_package(TIFF QUIET)
  if(TIFF_FOUND)
    target_link_libraries(trainer_tiff INTERFACE TIFF::TIFF)
    target_compile_definitions(trainer_tiff INTERFACE TRAINER_TIFF=1)
  endif()
endif()

# trainer_archives(<target> <library> ...): links the target's static library, the first one, and the
# static libraries that it needs.
function(trainer_archives target)
  foreach(library ${ARGN})
    find_library(TRAINER_${library}_ARCHIVE lib${library}.a REQUIRED PATH_SUFFIXES hdf5/serial)
    list(APPEND archives ${TRAINER_${library}_ARCHIVE})
  endforeach()
  list(POP_FRONT archives archive)
  get_target_property(configurations ${target} IMPORTED_CONFIGURATIONS)
  foreach(configuration ${configurations})
    set_property(TARGET ${target} PROPERTY IMPORTED_LOCATION_${configuration} ${archive})
  endforeach()
  set_property(TARGET ${target} PROPERTY IMPORTED_LOCATION ${archive})
  set_property(TARGET ${target} PROPERTY INTERFACE_LINK_LIBRARIES ${archives})
endfunction()
if(TRAINER_STATIC)
  trainer_archives(hdf5::hdf5 hdf5 sz aec z)
  trainer_archives(leveldb::leveldb leveldb snappy)
  trainer_archives(glog::glog glog gflags unwind lzma)
  trainer_archives(gflags gflags)
endif()

# oneDNN's parallel regions run on the program's own threads: src/backend/cpu/openmp.cc replaces
# libgomp and defines the functions that Debian's and Intel's builds of oneDNN call. A build that
# calls other functions would mix two runtimes.
set(openmp_functions GOMP_parallel GOMP_parallel_start GOMP_parallel_end GOMP_barrier
    GOMP_loop_static_start GOMP_loop_static_next GOMP_loop_end_nowait omp_get_thread_num
    omp_get_num_threads omp_get_max_threads omp_in_parallel)
execute_process(COMMAND ${CMAKE_NM} -D --undefined-only ${dnnl_dnnl_LIBRARY}
                OUTPUT_VARIABLE dnnl_symbols ERROR_QUIET)
string(REGEX MATCHALL "[ ](GOMP|omp|__kmpc)_[A-Za-z0-9_]+" dnnl_calls "${dnnl_symbols}")
list(TRANSFORM dnnl_calls STRIP)
list(REMOVE_ITEM dnnl_calls ${openmp_functions})
if(dnnl_calls)
  message(FATAL_ERROR "${dnnl_dnnl_LIBRARY} calls OpenMP functions that "
          "src/backend/cpu/openmp.cc does not have: ${dnnl_calls}. Build oneDNN with GCC's OpenMP, "
          "or add them there")
endif()

# MPI's header, for types and constants. The library is opened at run time, and only in processes
# that mpirun or srun started: linking it would add 30 ms to every start.
add_library(trainer_mpi INTERFACE)
add_library(trainer::mpi ALIAS trainer_mpi)
if(NOT TRAINER_MPI MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "TRAINER_MPI is ${TRAINER_MPI}; use AUTO, ON or OFF")
endif()
if(NOT TRAINER_MPI STREQUAL "OFF")
  set(MPI_CXX_SKIP_MPICXX TRUE)
  find_package(MPI QUIET COMPONENTS C)
  if(MPI_C_FOUND)
    list(GET MPI_C_LIBRARIES 0 mpi_library)
    execute_process(COMMAND ${CMAKE_OBJDUMP} -p ${mpi_library} OUTPUT_VARIABLE mpi_headers ERROR_QUIET)
    string(REGEX MATCH "SONAME +([^ \n]+)" mpi_soname "${mpi_headers}")
    if(mpi_soname)
      set(mpi_library ${CMAKE_MATCH_1})
    endif()
    target_include_directories(trainer_mpi SYSTEM INTERFACE ${MPI_C_INCLUDE_DIRS})
    target_compile_definitions(trainer_mpi INTERFACE OMPI_SKIP_MPICXX=1 MPICH_SKIP_MPICXX=1
                               TRAINER_MPI_LIBRARY="${mpi_library}")
  elseif(TRAINER_MPI STREQUAL "ON")
    message(FATAL_ERROR "TRAINER_MPI is ON and there is no MPI: install libopenmpi-dev")
  endif()
endif()
