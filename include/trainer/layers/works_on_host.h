#pragma once

namespace trainer {

// What a layer also is whose Forward does something on the host in each pass: it brings a batch,
// draws numbers there, reads what the device computed, or gives the device other calls than in the
// pass before. No recording holds that, so such a Forward is called in each pass.
class WorksOnHost {
 public:
  virtual ~WorksOnHost() = default;
};

}  // namespace trainer
