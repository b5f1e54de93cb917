# Language level, warnings and optimisation, as one interface target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
# O3 for the loops of map.h. No -march: the program runs on any x86-64 and picks AVX2 or AVX-512 at
# run time.
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG")

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
  # ccache requires this sloppiness for precompiled headers. It treats paths below this folder as
  # relative, so that other checkouts can reuse its results.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
endif()

# Messages name source files relative to the root of the checkout.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>)

option(TRAINER_WERROR "Warnings are errors" OFF)
set(TRAINER_SANITIZE "" CACHE STRING "Sanitizers, e.g. address,undefined or thread")

# A unity build compiles several files as one, so names of one file seem to shadow names of another,
# and types of a file's unnamed namespace seem to be used outside of it.
set(unit_warnings -Wshadow)
if(CMAKE_UNITY_BUILD)
  set(unit_warnings -Wshadow=local $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endif()
add_library(trainer_flags INTERFACE)
target_compile_options(trainer_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wnon-virtual-dtor -Wno-unknown-pragmas>
  "$<$<COMPILE_LANGUAGE:CXX>:${unit_warnings}>"
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict -Wno-stringop-overflow -Wno-array-bounds -Wno-stringop-overread>
  $<$<COMPILE_LANGUAGE:CXX>:-fno-math-errno -fno-trapping-math>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
if(TRAINER_WERROR)
  target_compile_options(trainer_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(TRAINER_SANITIZE)
  add_compile_options(-fsanitize=${TRAINER_SANITIZE} -fno-omit-frame-pointer -g)
  add_link_options(-fsanitize=${TRAINER_SANITIZE})
endif()

option(TRAINER_LIBRARY "Build libtrainer.so, for predictions inside other programs" ON)
# Debian's static libraries cannot be linked into a shared one, and the runtime of a sanitizer must be
# in the program.
if(TRAINER_STATIC OR TRAINER_SANITIZE)
  set(TRAINER_LIBRARY OFF)
endif()
# The library shares its objects with the program; linked into the program, they give the same code
# as without -fPIC. Without the second flag, the compiler would not inline replaceable functions.
if(TRAINER_LIBRARY)
  set(pic_flags -fPIC -fno-semantic-interposition)
  list(JOIN pic_flags "," pic_flags_of_host)
  target_compile_options(trainer_flags INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:${pic_flags}>"
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${pic_flags_of_host}>)
endif()

# TRAINER_CUDA_MODE: ON, OFF or EMULATED.
set(TRAINER_CUDA_MODE ${TRAINER_CUDA})
# nvcc is often installed but not on the path.
if(TRAINER_CUDA MATCHES "^(AUTO|ON)$" AND NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(TRAINER_NVCC nvcc PATHS ENV CUDA_PATH ENV CUDA_HOME /usr/local/cuda PATH_SUFFIXES bin)
  if(TRAINER_NVCC)
    set(CMAKE_CUDA_COMPILER ${TRAINER_NVCC})
  endif()
endif()
if(TRAINER_CUDA STREQUAL "AUTO")
  include(CheckLanguage)
  check_language(CUDA)
  set(TRAINER_CUDA_MODE OFF)
  # For six architectures nvcc needs half an hour of two cores: too long for machines without a GPU.
  if(CMAKE_CUDA_COMPILER AND EXISTS /dev/nvidiactl)
    set(TRAINER_CUDA_MODE ON)
  elseif(CMAKE_CUDA_COMPILER)
    # scripts/common.sh prints lines that begin so.
    message(NOTICE "trainer: no code for GPUs, because this machine has none; to include it for other "
                   "machines, configure with -DTRAINER_CUDA=ON")
  else()
    find_program(TRAINER_NVIDIA_SMI nvidia-smi)
    if(TRAINER_NVIDIA_SMI OR EXISTS /dev/nvidiactl)
      message(NOTICE "trainer: no code for this machine's GPU, because nvcc was not found; install the "
                     "CUDA toolkit or name its nvcc with -DCMAKE_CUDA_COMPILER=NVCC, and configure "
                     "with -DTRAINER_CUDA=ON")
    endif()
  endif()
endif()
if(NOT TRAINER_CUDA_MODE MATCHES "^(ON|OFF|EMULATED)$")
  message(FATAL_ERROR "TRAINER_CUDA is ${TRAINER_CUDA}; use AUTO, ON, OFF or EMULATED")
endif()
if(TRAINER_CUDA_MODE STREQUAL "EMULATED")  # the host's compiler compiles device code, for the tests
  target_compile_definitions(trainer_flags INTERFACE TRAINER_CUDA_EMULATED=1)
  target_include_directories(trainer_flags INTERFACE ${PROJECT_SOURCE_DIR}/tests/support/emulated_gpu)
endif()
# nvcc compiles the files with device code. CMake 3.25 does not know its flag for C++20.
if(TRAINER_CUDA_MODE STREQUAL "ON")
  # Every GPU since 2018, and PTX for future GPUs: 90, because PTX of 90a runs on no later GPU.
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
    set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 86-real 89-real 90a-real 90-virtual)
  endif()
  enable_language(CUDA)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA_STANDARD 20)
  target_compile_definitions(trainer_flags INTERFACE TRAINER_CUDA=1)
  target_compile_options(trainer_flags INTERFACE
    "$<$<COMPILE_LANGUAGE:CUDA>:--extended-lambda;--expt-relaxed-constexpr>"
    "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fno-math-errno,-fno-trapping-math>")
endif()
