// The ways of training that `lockstep bench train` times against each other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::bench {

// What PyTorch's own program is listed as: every rank alone, as apart, with torch.nn. As users run
// it, and with the malloc settings of our ranks, which make it faster.
inline constexpr const char* kPyTorch = "pytorch-none";
inline constexpr const char* kPyTorchTuned = "pytorch-none-malloc";

enum class Kind : std::uint8_t {
  apart,      // every rank alone, meeting the others at barriers: the yardstick
  threads,    // one process with the threads of all ranks, on the same global batch
  stage,      // a stage of ours
  pytorch,    // bench/peers/torch_train.py
  deepspeed,  // bench/peers/deepspeed_train.py
};

// What a sweep turns; nullopt: as a stage has it by default.
struct Dials {
  std::optional<double> bucket_mb = std::nullopt;
  std::optional<std::int64_t> unit_blocks = std::nullopt;
  std::optional<bool> overlap = std::nullopt;
};

struct Mode {
  std::string name;   // how it is listed: "ddp", "ddp bucket 5 MB"
  std::string stage;  // what its ranks are told: "ddp"
  Kind kind = Kind::stage;
  Dials dials = {};
};

// Whether ranks share the work, so that all of them end with the same weights.
bool is_data_parallel(const Mode& mode);
// PyTorch's and DeepSpeed's, whose bits are their own.
bool is_peer(const Mode& mode);
// The Python package that it needs; empty for ours.
std::string package_of(const Mode& mode);

// Throws UsageError for an unknown name, with those that are known. A peer's name may end in
// "-malloc": it then runs with the malloc settings of our ranks.
Mode mode_named(const std::string& name);
std::vector<Mode> modes_named(const std::vector<std::string>& names);

// Those that --peers adds.
std::vector<Mode> peers();

// The mode of ours that does what a peer does ("zero3" for "pytorch-fsdp2"); empty where `mode` is
// none of the peers.
std::string counterpart_of(const Mode& mode);

// Every stage of `modes` once for each of the dial's values; other modes stay. Throws UsageError
// when `dial` is unknown or turns nothing in one of the stages, and when there is no stage.
std::vector<Mode> swept(const std::string& dial, const std::vector<Mode>& modes);

// The stages that a dial is swept over where none are named.
std::vector<std::string> stages_for(const std::string& dial);

}  // namespace lockstep::bench
