#pragma once
// Tar files without folders whose last member, `checksum`, has a checksum of all bytes before it.
// Other programs read them as any tar file.

#include <span>
#include <string>
#include <vector>

namespace trainer {

struct TarMember {
  std::string name, content;
};

// Returns whether the file begins as a tar file whose first member has this name. Throws kNoInput
// and similar errors if it cannot be read.
bool IsTarThatBeginsWith(const std::string& path, const std::string& member);

// Writes the members in their order. Equal members give equal bytes. Throws as AtomicFile does, and
// kData for a member of 8 GiB or more.
void WriteSealedTar(const std::string& path, std::span<const TarMember> members);

// Reads the members without the checksum. Throws kData if the file is another kind of file, is
// truncated, or differs in any byte from what WriteSealedTar wrote; kNoInput, kNoPermission, kIo.
std::vector<TarMember> ReadSealedTar(const std::string& path);

}  // namespace trainer
