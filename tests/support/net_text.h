#pragma once

#include <string>

#include "trainer/config/net_spec.h"
#include "trainer/net/net.h"

namespace trainer {

// Returns a net from prototxt text, as if read from a file of that name.
NetSpec NetFromText(const std::string& text, const std::string& file = "net.prototxt");

// Returns a state of the given phase, level and stages.
caffe::NetState StateOf(caffe::Phase phase, int level = 0, std::vector<std::string> stages = {});

// Returns options for a net of `phase` that logs nothing, is trained in phase TRAIN and has a fixed
// seed.
NetOptions QuietOptions(caffe::Phase phase);

}  // namespace trainer
