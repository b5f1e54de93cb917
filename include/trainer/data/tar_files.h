#pragma once
// Which tar files a source names.

#include <string>
#include <vector>

namespace trainer {

// The files that a source names: one tar file, a pattern such as train-{0000..0146}.tar or
// train-*.tar, or a text file with a name on each line, which count from the working folder first,
// then from the text's. Throws kNoInput where nothing matches, kData for too many.
std::vector<std::string> ListTarFiles(const std::string& source);

// Whether a file is a tar archive, perhaps compressed by gzip, or a text that lists some; a
// pattern, or a file that is not there, by its name. Throws as OpenForReading does.
bool HoldsTarFiles(const std::string& path);

// Whether a name stands for several files.
bool IsFilePattern(const std::string& source);

}  // namespace trainer
