// The program: understands the command line, runs the verb, and turns whatever it throws into one
// line of text and an exit code.

#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <vector>

#include "trainer/base/log.h"
#include "trainer/base/text.h"
#include "verb.h"

namespace trainer {
namespace {

int Run(const std::vector<std::string>& arguments) {
  const Command command = ParseCommand(arguments);
  int code = 0;
  if (command.verb == nullptr) {
    std::cout << command.print;
  } else {
    ApplyLogFlags(command.flags);
    InitLogging("trainer");
    code = command.verb->Run(command.flags);
  }
  std::cout.flush();
  if (!std::cout) throw Error(ErrorCode::kIo, "cannot write to the standard output");
  return code;
}

int Fail(ErrorCode code, const std::string& message) {
  std::cout.flush();
  std::fprintf(stderr, "error: %s\n", message.c_str());
  return static_cast<int>(code);
}

int Guarded(const std::vector<std::string>& arguments) {
  try {
    return Run(arguments);
  } catch (const Error& e) {
    return Fail(e.code(), e.what());
  } catch (const std::bad_alloc&) {
    return Fail(ErrorCode::kResource,
                "out of host memory: lower batch_size; 'trainer plan' shows what needs it");
  } catch (const std::exception& e) {
    return Fail(ErrorCode::kInternal,
                Join("internal error, please report it: ", EscapeControl(e.what())));
  }
}

}  // namespace
}  // namespace trainer

int main(int argc, char** argv) {
  return trainer::Guarded(std::vector<std::string>(argv + 1, argv + argc));
}
