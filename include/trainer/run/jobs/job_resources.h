#pragma once
// The resources that a batch script requests from the queue: cores, memory, and time for the last
// snapshot.

#include <chrono>
#include <string>

#include "trainer/config/solver_spec.h"
#include "trainer/run/jobs/job_script.h"

namespace trainer {

// Returns the name of the solver's folder ("net" for "models/net/solver.prototxt") or, without a
// folder, of the solver. The name has letters, digits, '_' and '-' only.
std::string JobName(const std::string& solver);

// Parses the value of --time. Throws kUsage for less than a minute and for text that is not a time.
std::chrono::seconds ParseJobTime(const std::string& text);

// Returns the number of cores of the largest node of a Slurm partition ("": of all partitions), by
// sinfo; 0 if sinfo does not answer.
int CoresOfLargestNode(const std::string& partition);

// Returns how many seconds before the end of a job of `limit` the queue must tell the run to stop,
// if a snapshot takes `snapshot` seconds. The least is the time of two snapshots, because one may
// be in progress already, and 5 s for an iteration. A longer job gets an eighth of its limit, up to
// 60 s or 30 s more than the least.
int WarningSeconds(std::chrono::seconds limit, double snapshot);

// Sets the cores (if `job` has 0), the memory and the time for the last snapshot from the memory
// estimate of the solver's run. `processes` is the number of processes of the program that one task
// starts. If the folder of the snapshots exists, writes a file there and removes it, to measure the
// file system. Throws kUsage for more cores than a node has, and the errors of AtomicFile.
void EstimateJobResources(const SolverSpec& spec, JobSpec* job, int processes = 1);

// Completes `job`, which has what the user asks for, for the run of `spec`: the name, the prefix of
// the snapshots, the GPUs of solver_mode, and everything that EstimateJobResources sets. Throws as
// that does, and if the run could not write its snapshots.
void DescribeRun(const SolverSpec& spec, JobSpec* job);

}  // namespace trainer
