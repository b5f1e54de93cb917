#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trainer/input/batch.h"
#include "trainer/input/record_sampler.h"
#include "trainer/tensor/shape.h"

namespace trainer {

// Decodes records, one for each worker. The result depends on record, number and batch index only.
class Decoder {
 public:
  virtual ~Decoder() = default;
  // Fills the rows in order. Throws at the first bad record, naming the source and the record.
  virtual void Decode(std::span<const Record> records, Batch* batch) = 0;
  // Fraction of the decoding time so far, 0 to 1, that was spent on transforms.
  virtual double transform_fraction() const { return 0; }
};

// Knows the shapes of a source's batches and makes its decoders.
class DecoderFactory {
 public:
  virtual ~DecoderFactory() = default;

  // Called once, before all others. A factory whose shapes depend on the first record reads it from
  // the sampler, and leaves the sampler where it was. Throws if the source cannot be used.
  virtual void Inspect(RecordSampler& /*sampler*/) {}
  // Shapes of the outputs of one rank's batch. `labels`: whether images have a second output.
  virtual std::vector<Shape> Shapes(int64_t batch_size, bool labels) const = 0;
  // Converts bytes to floats, for sources whose batches may hold bytes; null for other sources.
  virtual const Normalization* normalization() const { return nullptr; }
  virtual std::unique_ptr<Decoder> Make() const = 0;
  // CPU time that decoding the first record took, in seconds; 0: unknown.
  virtual double decode_seconds() const { return 0; }

  // Whether Mix must be called when all records of a batch are decoded. `batch_size` is the size
  // for one rank, since each rank's items are mixed separately. Called from any thread.
  virtual bool mixes() const { return false; }
  virtual void Mix(int64_t /*batch_size*/, Batch* /*batch*/) const {}
};

// The input of a BatchQueue. Decoders may use data of the sampler, so they are destroyed first.
struct RecordSource {
  std::unique_ptr<RecordSampler> sampler;
  std::unique_ptr<DecoderFactory> decoders;
};

}  // namespace trainer
