#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "support/net_text.h"
#include "support/test_device.h"
#include "trainer/base/text/text.h"
#include "trainer/inference/generative/rbm.h"

namespace trainer {

// A net with one RBM with random weights.
struct SmallRbm {
  SmallRbm(int visible, int hidden, const std::string& fields = "")
      : device(MakeTestDevice()),
        spec(NetFromText(Join(
            "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 4 dim: ", visible,
            " } } } layer { name: 'rbm' type: 'RBM' bottom: 'x' top: 'h' rbm_param { num_output: ",
            hidden,
            " weight_filler { type: 'gaussian' std: 0.7 } hidden_bias_filler { type: "
            "'uniform' min: -1 max: 1 } visible_bias_filler { type: 'uniform' min: -1 max: 1 } ",
            fields, " } }"))),
        params(*device),
        net(spec, OptionsOf(), *device, params),
        rbm(FindRbms(net).at(0)) {}

  static NetOptions OptionsOf() {
    NetOptions options;
    options.state = StateOf(caffe::TEST);
    options.seed = 5;
    options.log = false;
    options.memory = BufferReuse::kSeparate;
    return options;
  }
  std::vector<float> Values(const char* param) { return WeightOf(*device, *params.Find(param)); }
  // Returns the negative free energy of visible units.
  double LogP(const std::vector<double>& v) {
    const std::vector<float> w = Values("rbm:0"), c = Values("rbm:1"), b = Values("rbm:2");
    double sum = 0;
    for (size_t i = 0; i < v.size(); ++i) {
      sum += rbm.units.gaussian ? -0.5 * (v[i] - b[i]) * (v[i] - b[i]) : b[i] * v[i];
    }
    for (size_t j = 0; j < c.size(); ++j) {
      double input = c[j];
      for (size_t i = 0; i < v.size(); ++i) input += w[j * v.size() + i] * v[i];
      sum += std::log1p(std::exp(input));
    }
    return sum;
  }

  std::unique_ptr<Device> device;
  NetSpec spec;
  ParamStore params;
  Net net;
  RbmModel rbm;
};

}  // namespace trainer
