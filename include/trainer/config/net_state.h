#pragma once

#include <string>
#include <vector>

#include "net.pb.h"
#include "trainer/config/net_spec.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

// A net file with the values of --set, --level and --stage.
struct NetSource {
  std::string file = "";
  std::vector<std::string> set = {};
  StateFlags state = {};
};

// Loads the net with its changes. Throws as LoadNet, Overrides and RequireNamedStage.
NetSpec LoadNet(const NetSource& source);
// Makes a net from text in memory, in the form of today; messages use `file` as its name. Throws as
// ParseTextString does.
NetSpec LoadNetText(const std::string& file, std::string content);

// Returns the state that --level and --stage select in a net that is not part of a solver.
caffe::NetState MakeNetState(caffe::Phase phase, const StateFlags& flags);

// Throws kUsage, with the nearest name, if the rules of the net's layers name stages, but none of
// `stages`, which are probably misspelled.
void RequireNamedStage(const std::vector<std::string>& stages, const NetSpec& net);

}  // namespace trainer
