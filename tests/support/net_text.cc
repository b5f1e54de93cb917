#include "support/net_text.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace trainer {

NetSpec NetFromText(const std::string& text, const std::string& file) {
  const std::string path = testing::TempDir() + std::to_string(getpid()) + "_" + file;
  std::ofstream(path) << text;
  return LoadNet(path);
}

caffe::NetState StateOf(caffe::Phase phase, int level, std::vector<std::string> stages) {
  caffe::NetState state;
  state.set_phase(phase);
  state.set_level(level);
  for (const std::string& stage : stages) state.add_stage(stage);
  return state;
}

NetOptions QuietOptions(caffe::Phase phase) {
  NetOptions options;
  options.state = StateOf(phase);
  options.training = phase == caffe::TRAIN;
  options.seed = 7;
  options.log = false;
  return options;
}

}  // namespace trainer
