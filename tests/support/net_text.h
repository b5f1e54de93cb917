#pragma once

#include <string>

#include "trainer/config/net_spec.h"

namespace trainer {

// A net from prototxt text, as if read from a file of that name.
NetSpec NetFromText(const std::string& text, const std::string& file = "net.prototxt");

// A state of the given phase, level and stages.
caffe::NetState StateOf(caffe::Phase phase, int level = 0, std::vector<std::string> stages = {});

}  // namespace trainer
