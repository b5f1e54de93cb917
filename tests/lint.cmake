# The checks of the tree as tests, and tests that those checks can fail.
find_package(Python3 3.9 QUIET COMPONENTS Interpreter)
if(NOT Python3_FOUND)
  message(STATUS "No Python 3: the lint tests are left out")
  return()
endif()

foreach(check deps devices homes layers names size text)
  add_test(NAME lint.${check}
           COMMAND Python3::Interpreter -B ${PROJECT_SOURCE_DIR}/scripts/check_${check}.py
                   ${PROJECT_SOURCE_DIR})
endforeach()
add_test(NAME lint.format COMMAND bash ${PROJECT_SOURCE_DIR}/scripts/check_format.sh)
add_test(NAME lint.shell COMMAND bash ${PROJECT_SOURCE_DIR}/scripts/check_shell.sh)
set_tests_properties(lint.format lint.shell PROPERTIES SKIP_RETURN_CODE 77)
foreach(check deps devices homes layers names size text format shell setup rerun build)
  add_test(NAME lint.${check}_can_fail
           COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/lint/${check}_test.py)
  set_tests_properties(lint.${check}_can_fail PROPERTIES SKIP_RETURN_CODE 77)
endforeach()
get_directory_property(lint_tests TESTS)
list(FILTER lint_tests INCLUDE REGEX "^lint\\.")
set_tests_properties(${lint_tests} PROPERTIES LABELS lint TIMEOUT 600)
