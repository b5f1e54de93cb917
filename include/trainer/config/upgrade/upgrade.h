#pragma once
// Rewrites old forms of nets and solvers. Text files and files of weights are upgraded in memory
// whenever they are loaded; `trainer upgrade` writes the result.

#include <string>
#include <vector>

#include "trainer/config/net_spec.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

// Rewrites `layers` (both old forms), `input` and the three ParamSpecs of a BatchNorm in a net read
// from `file`. `tree` holds the places of its fields, null when no text holds it. Throws kConfig
// for a mixture of both forms or an unknown old type.
Upgrades UpgradeNet(caffe::NetParameter* net, const std::string& file,
                    const google::protobuf::TextFormat::ParseInfoTree* tree = nullptr);

// Rewrites `solver_type` and the nets written inside the solver. Throws kConfig as UpgradeNet does,
// and when both solver_type and type are given.
Upgrades UpgradeSolver(SolverSpec* solver);

// Rewrites the blobs of an upgraded net as `shape` and float arrays: the four old sizes (with the
// number of axes that Convolution, Deconvolution and InnerProduct have now; other types keep the
// old sizes), doubles, and raw data of any type that ReadBlob reads. Throws as ReadBlob does.
Upgrades UpgradeBlobs(caffe::NetParameter* net, const std::string& file);

// A file of protobuf text in its newest form.
struct UpgradedText {
  bool is_solver = false;
  std::string text;  // comments are lost
  Upgrades upgrades;
};

// Reads a net or a solver; the fields of the file decide which of them it is. Throws as ParseText,
// UpgradeNet and UpgradeSolver do.
UpgradedText UpgradeText(const std::string& path);

// Logs one line for each report.
void LogUpgrades(const Upgrades& upgrades);

}  // namespace trainer
