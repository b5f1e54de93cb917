#pragma once
// Writes nets and solvers for `trainer new`, with sizes filled in from a data set.

#include <cstdint>
#include <string>
#include <vector>

namespace trainer {

// The two sets of a new net and what was found in them.
struct NewNetData {
  std::string train, test;  // paths of the sets
  std::string backend;      // of both: "LMDB" or "LEVELDB"
  int64_t channels = 0, height = 0, width = 0;
  int64_t classes = 0;  // 0: the records have no labels
  int64_t train_records = 0, test_records = 0;
  std::vector<double> mean;  // of each channel, bytes from 0 to 255
  double deviation = 0;      // standard deviation over all channels, of bytes
};

// The settings of a new net, chosen from its data and template.
struct NewNetPlan {
  std::string name;     // of the net
  std::string shape;    // the template: "lenet", "resnet18", ...
  int crop = 0;         // side of the square that is cut out of each image; 0: all of it
  bool mirror = false;  // flip half of the training images
  int64_t train_batch = 0, test_batch = 0;
  int64_t max_iter = 0, test_interval = 0;
};

// The names that --template takes.
const std::vector<std::string>& NetTemplates();

// The template for these images: lenet for digits, cnn for few photographs, else resnet18.
std::string TemplateFor(const NewNetData& data);

// Chooses batch, crop and schedule: a batch of at most a tenth of the records, `epochs` passes
// over the training set. Throws kUsage if the template cannot take images of this size.
NewNetPlan PlanNet(const NewNetData& data, const std::string& shape, const std::string& name,
                   int64_t epochs);

// The net for training and tests, and its solver, in prototxt with a comment for each part.
std::string NetText(const NewNetData& data, const NewNetPlan& plan);
std::string SolverText(const NewNetData& data, const NewNetPlan& plan, const std::string& net,
                       const std::string& snapshot_prefix);

}  // namespace trainer
