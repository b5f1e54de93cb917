#pragma once
// The memory plan of one net, as `trainer plan` shows it.

#include <string>

#include "trainer/base/json.h"
#include "trainer/net/net.h"

namespace trainer {

// Prints each block with its place and lifetime, and what is held when most is.
void PrintNet(const std::string& title, const Net& net);
Json NetJson(const std::string& title, const Net& net);

}  // namespace trainer
