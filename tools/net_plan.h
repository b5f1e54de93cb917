#pragma once
// The memory plan of one net, as `trainer plan` shows it.

#include <string>

#include "trainer/base/json.h"
#include "trainer/net/net.h"

namespace trainer {

// Prints in a few lines when most memory is in use and by what.
void PrintPeakLine(const std::string& title, const Net& net);
// Prints each block with its place and lifetime, and what is held when most is.
void PrintNet(const std::string& title, const Net& net);
Json NetJson(const std::string& title, const Net& net);

}  // namespace trainer
