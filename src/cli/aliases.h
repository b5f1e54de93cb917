#pragma once
// What people type who come from Caffe or from other trainers.

#include <string>

namespace trainer {

// What does here what `name` does elsewhere, as a command line with words in capitals to fill in:
// "trainer dataset images ROOT LIST DB" for "convert_imageset". "" for a name that nobody uses.
std::string CommandFor(const std::string& name);

}  // namespace trainer
