#pragma once
// The convolutions of the nets in models/.

#include <string>
#include <vector>

#include "trainer/backend/primitives/conv.h"

namespace trainer {

struct ZooConv {
  ConvDesc desc;
  std::string nets;  // "alexnet caffenet"
  int count = 0;     // layers of this shape in all of them
};

// One entry per shape. Batches are as in the training nets, but `most_images` at most; `only` names
// the folders of models/, all when empty.
std::vector<ZooConv> ConvsOfZoo(int64_t most_images, const std::vector<std::string>& only);

}  // namespace trainer
