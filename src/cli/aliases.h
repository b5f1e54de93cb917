#pragma once
// Command names of Caffe and of other trainers.

#include <string>

namespace trainer {

// Returns the command line that does what `name` does in another program, with words in capitals to
// fill in: "trainer dataset images ROOT LIST DB" for "convert_imageset". Returns "" for an unknown
// name.
std::string CommandFor(const std::string& name);

}  // namespace trainer
