#pragma once
// A protobuf message in a file that allows damage to be detected: first the field file_bytes, then
// the message, last the field crc32c over all bytes before it. Both fields have the same numbers in
// NetParameter and SolverState; programs that do not know them skip them. The first field detects a
// truncated file, the last any flipped bit, and a flipped bit cannot hide both.

#include <google/protobuf/message.h>

#include <optional>
#include <string>

#include "state.pb.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/checkpoint/model_file.h"

namespace trainer {

// Writes `message`, whose own file_bytes and crc32c must not be set, into an open file; the caller
// calls Finish and Place. Streams the message, so it needs no copy. Throws kConfig if the file
// would exceed 2 GiB - 1, see CheckModelBytes.
FileChecksum WriteChecksummed(const google::protobuf::Message& message, AtomicFile* file);

// Writes a net in the format that the file's name selects; the caller calls Finish and Place.
// Clears net's file_bytes and crc32c unless it writes HDF5.
FileChecksum WriteModelTo(caffe::NetParameter& net, AtomicFile* file);
// Writes a state in the format that the file's name selects; the caller calls Finish and Place.
// Clears the state's file_bytes and crc32c.
FileChecksum WriteStateTo(caffe::SolverState& state, AtomicFile* file);

// Returns the checksum that a file of this program contains, without verifying it. Returns nothing
// for a file without one. Throws kNoInput and similar errors if it cannot be read.
std::optional<FileChecksum> StoredChecksum(const std::string& path);

// Checks the file, protobuf or HDF5, without parsing it. Returns nothing for a file without a
// checksum of this program, such as Caffe's. Throws kBadSnapshot for an empty, truncated or changed
// file, kData for a file above 2 GiB - 1 that is neither ours nor HDF5, and kNoInput and similar
// errors if it cannot be read.
std::optional<FileChecksum> VerifyChecksum(const std::string& path);

// Parses a protobuf file, whose checksum the caller has verified. If that fails, throws
// `unparsable` and says that the file is not of kind `kind` ("file of weights").
void ParseFile(const std::string& path, const std::string& kind, ErrorCode unparsable,
               google::protobuf::Message* message);

// FileKind says what a file of a snapshot holds.
enum class FileKind { kModel, kState, kUnknown };
// Returns the kind of a file by its first fields, or by its groups if it is HDF5; kUnknown for any
// other file. Neither parses the file nor verifies its checksum.
FileKind SniffKind(const std::string& path);

}  // namespace trainer
