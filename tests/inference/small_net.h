#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/net_text.h"
#include "trainer/backend/device/cpu_device.h"
#include "trainer/net/net.h"

namespace trainer {

// A TEST net in which each value has its own memory.
struct SmallNet {
  NetSpec spec;
  std::unique_ptr<Device> device = MakeCpuDevice(1);
  ParamStore params{*device};
  std::unique_ptr<Net> net;

  explicit SmallNet(const std::string& text) : spec(NetFromText(text)) {
    NetOptions options;
    options.state = StateOf(caffe::TEST);
    options.memory = BufferReuse::kSeparate;
    options.log = false;
    net = std::make_unique<Net>(spec, options, *device, params);
  }

  std::vector<float> Get(const std::string& blob) const {
    const Tensor value = net->Value(blob);
    std::vector<float> host(static_cast<size_t>(value.Count()));
    net->ReadNchw(value, host);
    return host;
  }
};

}  // namespace trainer
