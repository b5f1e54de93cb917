#pragma once
// The labels of a sample in a JSON or NumPy file, as WebDataset stores them.

#include <string>
#include <string_view>
#include <vector>

namespace trainer {

// Returns the labels in a JSON file: the file is a number, a list of numbers, or an object whose
// member "label" is one of both; true and false are 1 and 0. Returns nothing for other objects,
// which describe the image. `file` and `name` name the tar file and its entry in messages. Throws
// kData for any other content.
std::vector<float> JsonLabels(const std::string& text, const std::string& file,
                              const std::string& name);

// Returns the numbers of an array in NumPy's format (.npy). Throws kData as ParseNpyHeader does,
// and for an array without numbers, one of several axes in Fortran's order, another size than its
// header says, and numbers that are not finite.
std::vector<float> NpyLabels(std::string_view bytes, const std::string& file,
                             const std::string& name);

}  // namespace trainer
