#pragma once
// Weights and solver states as HDF5, in Caffe's layout: /data/<layer>/<blob> (with snapshot_diff
// also /diff/...), a shared blob with its owner alone; /iter, /current_step, /learned_net,
// /history/<number>. A layer's name may hold slashes: each part is a group. What our states hold
// beyond Caffe's lies in /trainer_state, a SolverState without history as bytes.

#include "net.pb.h"
#include "state.pb.h"
#include "trainer/hdf5/sketch.h"

namespace trainer {

// The messages must stay until the sketch is written; `state` comes back as it was. Throws kConfig
// as CheckHdf5Names.
void SketchModel(const caffe::NetParameter& net, Hdf5Sketch* sketch);
void SketchState(caffe::SolverState& state, Hdf5Sketch* sketch);

// Layers with names and blobs only. A blob that the file leaves out, such as a shared one, is there
// without shape and numbers. Throws kData.
caffe::NetParameter ReadHdf5Model(const std::string& path);
// Throws kBadSnapshot.
caffe::SolverState ReadHdf5State(const std::string& path);

}  // namespace trainer
