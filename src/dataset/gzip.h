#pragma once
// Files compressed by gzip.

#include <cstdint>
#include <functional>
#include <string>

namespace trainer {

// Whether a file begins as gzip's do. Throws as OpenForReading does, and kIo.
bool IsGzip(const std::string& path);

// How large gzip says that the file was, in 32 bits: of one below 4 GiB that was compressed in one
// piece. 0 for a file that is too short. Throws as IsGzip does.
uint64_t UnpackedBytes(const std::string& path);

// Unpacks `from`, one piece or several, to `to`, which is written as AtomicFile does. `done` hears
// of bytes as they are written. Throws kData for a file that is damaged or cut short, and for one
// that unpacks to far more than pictures can; the errors of reading and of AtomicFile.
void UnpackGzip(const std::string& from, const std::string& to,
                const std::function<void(uint64_t)>& done);

}  // namespace trainer
