# libtrainer.so with its header and CMake package, for predictions inside other C++ programs
# (include/trainer/inference/predictor.h). `cmake --install BUILD --component dev` installs it.
#
# It is a shared library, not a static one. Layers and kernels register themselves when the library
# is loaded, and a linker leaves such objects of a static library out. A program that links it needs
# none of the ten libraries below it, and no option. It exports only the functions of the header:
# src/backend/cpu/openmp.cc, which takes the place of GCC's OpenMP in the program, must not do so in
# another program, whose own parallel loops would then run on two runtimes.
set(exports ${PROJECT_SOURCE_DIR}/scripts/cmake/exports.map)
trainer_closure(modules inference)
add_library(libtrainer SHARED)
target_link_libraries(libtrainer PRIVATE ${modules})
target_link_options(libtrainer PRIVATE -Wl,--version-script=${exports} -Wl,--no-undefined)
set_target_properties(libtrainer PROPERTIES
  OUTPUT_NAME trainer VERSION ${PROJECT_VERSION} LINK_DEPENDS ${exports}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
trainer_link_cuda(libtrainer)

# A plain `cmake --install` leaves the component dev out, because the program does not need it.
include(CMakePackageConfigHelpers)
set(dev COMPONENT dev EXCLUDE_FROM_ALL)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/trainer)
set(library_file ${CMAKE_INSTALL_LIBDIR}/libtrainer.so)
set(made_package ${PROJECT_BINARY_DIR}/install)
configure_package_config_file(${PROJECT_SOURCE_DIR}/scripts/packaging/trainerConfig.cmake.in
  ${made_package}/trainerConfig.cmake INSTALL_DESTINATION ${package_folder}
  PATH_VARS library_file CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${made_package}/trainerConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(TARGETS libtrainer LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ${dev} NAMELINK_COMPONENT dev)
install(FILES include/trainer/inference/predictor.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/trainer ${dev})
install(FILES ${made_package}/trainerConfig.cmake ${made_package}/trainerConfigVersion.cmake
        DESTINATION ${package_folder} ${dev})
# Debian's folder and name for the terms of the package libtrainer-dev.
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libtrainer-dev RENAME copyright ${dev})
