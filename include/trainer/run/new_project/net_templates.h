#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainer {

// The two sets of a new project, and the statistics of the training set.
struct ProjectData {
  std::string train, test;  // paths
  std::string backend;      // of both: "LMDB" or "LEVELDB"
  int64_t channels = 0, height = 0, width = 0;
  int64_t classes = 0;  // 0: the records have no labels
  int64_t train_records = 0, test_records = 0;
  std::vector<double> mean;  // by channel, in [0, 255]
  double deviation = 0;      // standard deviation over all channels, in [0, 255]
};

// The settings of a new net that depend on its data.
struct TemplateSettings {
  std::string name;          // of the net
  std::string net_template;  // "lenet", "resnet18", ...
  int crop = 0;              // side of the square that is cropped from each image; 0: no crop
  bool mirror = false;       // flip half of the training images
  int64_t train_batch = 0, test_batch = 0;
  int64_t max_iter = 0, test_interval = 0;
};

// Returns the values of --template.
const std::vector<std::string>& NetTemplates();

// Chooses lenet for small gray images, cnn for few photographs, resnet18 for more, and autoencoder
// for images without labels.
std::string ChooseTemplate(const ProjectData& data);

// Chooses batch, crop and schedule. A training batch has at most 64 images and at most a tenth of
// the records; training takes `epochs` passes over the training set. Throws kUsage if the images
// are too small for the template.
TemplateSettings ChooseSettings(const ProjectData& data, const std::string& net_template,
                                const std::string& name, int64_t epochs);

// Returns the prototxt of the net for training and tests, with a comment for each part.
std::string NetText(const ProjectData& data, const TemplateSettings& settings);
// Returns the prototxt of the solver, with a comment for each field. `net` is the path of the net's
// file. The update rule is Adam for mlp and autoencoder, SGD with momentum for the others.
std::string SolverText(const ProjectData& data, const TemplateSettings& settings,
                       const std::string& net, const std::string& snapshot_prefix);

}  // namespace trainer
