#pragma once
// The memory plan of one net, as `trainer plan` shows it.

#include <string>

#include "trainer/base/text/json.h"
#include "trainer/net/net.h"

namespace trainer {

// One line of at most kColumns columns, if `title` is short: the step of the net that needs the
// most memory and the values that hold it, e.g. "training net: most at pool1, 3.88 MiB: conv1 2.81
// MiB".
std::string PeakLine(const std::string& title, const Net& net);
// Prints each block with its place and lifetime, and what is held when most is.
void PrintNet(const std::string& title, const Net& net);
Json NetJson(const std::string& title, const Net& net);

}  // namespace trainer
