# Defines which files `cmake --install` installs and which of them CPack packs.
include(GNUInstallDirs)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME program)
if(TRAINER_LIBRARY)
  include(TrainerLibrary)
endif()
set(share ${CMAKE_INSTALL_DATADIR}/trainer)

install(TARGETS trainer)
install(DIRECTORY models DESTINATION ${share})
install(FILES README.md CHANGELOG.md SECURITY.md CITATION.cff DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
# Debian's name for the licence.
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)

# The program prints its own manual page and completion. The module file contains the prefix, which
# is known only at installation.
set(made ${PROJECT_BINARY_DIR}/install)
set(module_template ${PROJECT_SOURCE_DIR}/scripts/packaging/modulefile.in)
install(CODE "
  set(version ${PROJECT_VERSION})
  file(MAKE_DIRECTORY ${made})
  foreach(page man completion)
    execute_process(COMMAND $<TARGET_FILE:trainer> help --\${page} OUTPUT_FILE ${made}/\${page}
                    COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  file(RENAME ${made}/man ${made}/trainer.1)
  execute_process(COMMAND gzip -9nf ${made}/trainer.1 COMMAND_ERROR_IS_FATAL ANY)
  configure_file(${module_template} ${made}/modulefile @ONLY)")
install(FILES ${made}/trainer.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${made}/completion DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
        RENAME trainer)
# The programs of /usr are already on every PATH, and a module must not put /usr first.
install(CODE "
  if(NOT CMAKE_INSTALL_PREFIX STREQUAL \"/usr\")
    file(INSTALL ${made}/modulefile DESTINATION \${CMAKE_INSTALL_PREFIX}/${share}/modulefiles/trainer
         RENAME ${PROJECT_VERSION})
  endif()")

# cpack -G DEB makes packages for Debian 12, of the program and of libtrainer.so. dpkg-shlibdeps
# finds their dependencies.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME trainer)
set(CPACK_PACKAGE_VENDOR trainer)
set(CPACK_PACKAGE_CONTACT "the maintainers of trainer <trainer@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "trains neural networks described in Caffe's prototxt")
set(CPACK_PACKAGE_DESCRIPTION
    "Reads the nets, solvers, weights and data sets of Caffe and trains on CPUs, on GPUs of NVIDIA"
    "and on several machines. A stopped run resumes and reaches the same weights, bit for bit.")
list(JOIN CPACK_PACKAGE_DESCRIPTION " " CPACK_PACKAGE_DESCRIPTION)
set(CPACK_SET_DESTDIR ON)  # installed files then contain /usr, not the staging folder
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL program)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME trainer)
# Only runs on several machines open MPI's library.
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS openmpi-bin)
if(TRAINER_LIBRARY)
  list(APPEND CPACK_COMPONENTS_ALL dev)
  set(CPACK_DEBIAN_DEV_PACKAGE_NAME libtrainer-dev)
  set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
  set(CPACK_DEBIAN_DEV_DESCRIPTION
      "A shared library with one header, by which C++ programs predict with trained nets, and its"
      "CMake package.")
  list(JOIN CPACK_DEBIAN_DEV_DESCRIPTION " " CPACK_DEBIAN_DEV_DESCRIPTION)
endif()
include(CPack)
