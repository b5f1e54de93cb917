#pragma once
// What the tasks of `trainer dataset` have in common that make sets of picture files.

#include "dataset_task.h"
#include "flags.h"
#include "trainer/dataset/images.h"

namespace trainer {

// The words and the flags that they share.
ImagesOptions ImagesOptionsOf(const Flags& flags);
void PrintImages(const ImagesOptions& options, const ImagesResult& result);

}  // namespace trainer
