#pragma once

#include <string>
#include <vector>

namespace trainer {

// Lists the files of a source: one tar file, a pattern such as train-{0000..0146}.tar or
// train-*.tar, or a text file with a name per line, relative to the working folder or else to the
// text file. Throws kNoInput if nothing matches, kData for too many.
std::vector<std::string> ExpandShards(const std::string& source);

// Whether the source is a tar archive, perhaps gzipped, or a text file that lists some. What does
// not exist is judged by its name. Throws as OpenForReading does.
bool HoldsTarShards(const std::string& path);

// Whether the name is a pattern for several files.
bool IsShardPattern(const std::string& source);

}  // namespace trainer
