#pragma once

#include <string>

#include "trainer/config/net_spec.h"
#include "trainer/net/net.h"

namespace trainer {

// A net from prototxt text, as if read from a file of that name.
NetSpec NetFromText(const std::string& text, const std::string& file = "net.prototxt");

// A state of the given phase, level and stages.
caffe::NetState StateOf(caffe::Phase phase, int level = 0, std::vector<std::string> stages = {});

// For a net of `phase` that logs nothing: trained in phase TRAIN, and of one fixed seed.
NetOptions QuietOptions(caffe::Phase phase);

}  // namespace trainer
