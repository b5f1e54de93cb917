#pragma once
// The only error type of the program, and the place in a user's file to which an error refers.

#include <stdexcept>
#include <string>

namespace trainer {

// The values are the process's exit codes: sysexits numbers where they fit, never 1, 126 or 127.
enum class ErrorCode : int {
  kUsage = 64,         // a flag or a verb
  kData = 65,          // a file's content
  kNoInput = 66,       // a file that is not there
  kUnavailable = 69,   // no such device, driver or feature in this build
  kInternal = 70,      // our bug
  kCannotCreate = 73,  // an output folder or file
  kIo = 74,            // reading or writing failed, disk full, quota
  kStopped = 75,       // stopped early with nothing lost: run again to go on
  kProtocol = 76,      // ranks disagree
  kNoPermission = 77,
  kConfig = 78,       // a solver or a net
  kDiverged = 80,     // the loss is not finite
  kResource = 81,     // host or device memory
  kPeerLost = 82,     // a rank died or went silent
  kBadSnapshot = 83,  // none usable, or of another net
  kNotLearned = 84,   // train --overfit: the loss did not fall enough
};

// A place in a file. `line` and `column` count from 1; 0 means unknown and is not printed.
struct SourceRef {
  std::string file;
  int line = 0;
  int column = 0;

  // Returns "file:line:column", "file:line" or "file"; "" without a file.
  std::string ToString() const;
};

// Thrown for everything that stops a command. what() is "place: message", on one line unless the
// message itself quotes a line of the user's file. Message style: what is wrong, why, what to try.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const SourceRef& place, const std::string& message);
  Error(ErrorCode code, const std::string& message) : Error(code, SourceRef{}, message) {}

  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace trainer
