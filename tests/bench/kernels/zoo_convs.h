#pragma once
// Provides the convolutions of the nets in models/.

#include <string>
#include <vector>

#include "trainer/backend/primitives/conv.h"

namespace trainer {

struct ZooConv {
  ConvDesc desc;
  std::string nets;  // "alexnet caffenet"
  int count = 0;     // layers of this shape in all nets
};

// Returns one entry per shape. Batches are as in the training nets, but at most `most_images`.
// `only` names folders of models/; if it is empty, all are used.
std::vector<ZooConv> ConvsOfZoo(int64_t most_images, const std::vector<std::string>& only);

}  // namespace trainer
