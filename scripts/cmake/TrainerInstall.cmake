# What `cmake --install` puts under its prefix, and what CPack packs of it.
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
# Debian's name for the terms.
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)

# The manual page and the completion are what the program prints of itself; the module file names the
# prefix, which is known when it is installed alone.
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
# What is in /usr is in everybody's path, which a module must not put first.
install(CODE "
  if(NOT CMAKE_INSTALL_PREFIX STREQUAL \"/usr\")
    file(INSTALL ${made}/modulefile DESTINATION \${CMAKE_INSTALL_PREFIX}/${share}/modulefiles/trainer
         RENAME ${PROJECT_VERSION})
  endif()")

# cpack -G DEB: packages of Debian 12, of the program and of libtrainer.so. What they depend on,
# dpkg-shlibdeps finds.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME trainer)
set(CPACK_PACKAGE_VENDOR trainer)
set(CPACK_PACKAGE_CONTACT "the maintainers of trainer <trainer@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "trains neural networks described in Caffe's prototxt")
set(CPACK_PACKAGE_DESCRIPTION
    "Reads the nets, solvers, weights and data sets of Caffe and trains on CPUs, on GPUs of NVIDIA"
    "and on several machines. A stopped run resumes and reaches the same weights, bit for bit.")
list(JOIN CPACK_PACKAGE_DESCRIPTION " " CPACK_PACKAGE_DESCRIPTION)
set(CPACK_SET_DESTDIR ON)  # so that the prefix is what the package's files will be told
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL program)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME trainer)
# Opened by runs on several machines alone.
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
