// A flat parameter: the parameters of one dtype of a bucket laid end to end in one storage, of
// which the module's tensors are views. Where it is sharded, each rank keeps full precision, and
// updates, only its own elements.
#pragma once

#include "base/flat_layout.h"
#include "lockstep/group.h"
#include "parallel/device.h"

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep::parallel {

// One trainable parameter of the module.
struct NamedParameter {
  std::string name;
  at::Tensor tensor;     // the module's own tensor (shared handle)
  torch::Dtype held_as;  // the dtype that the precision asks for
};

// Where a trained parameter lies: a flat parameter's number, and its own among the members.
struct Place {
  std::size_t part;
  std::size_t member;
};

// How a flat parameter is spread over a group.
struct Spread {
  int ranks = 1;                  // that its layout has shards for
  std::optional<int> shard = {};  // this rank's number where it keeps only its shard
  SymmetricSpan values = {};      // where the values lie; without memory: in the device's own
  // Or where the host's one copy of them lies, from which byte on: read in place by all ranks, each
  // of which writes its shard.
  HostMemory host_values = {};
  std::int64_t host_offset = 0;
};

class FlatParameter {
 public:
  // Elements that these members take, padding included.
  static FlatLayout layout_of(const std::vector<NamedParameter>& members, int ranks);

  // Copies the members' values into flat memory, in fp32 (fp64 for fp64), but for those in shards
  // (kept_shard.h), which initialise() is for; call attach_members() next. All members are held as
  // the same dtype.
  FlatParameter(Device& device, std::vector<NamedParameter> members, const Spread& spread);

  // The values as they were initialised, for the broadcast at start: f32 or f64, the padding
  // included.
  Span initial_values();
  void initialise(std::size_t i, const at::Tensor& values);
  // Rounds them into the dtype members are held in and points the members at the result. With one
  // copy on the host it is complete when all ranks have done so.
  void attach_members(Device& device);

  Dtype dtype() const { return dtype_; }
  const FlatLayout& layout() const { return layout_; }
  std::size_t members() const { return members_.size(); }
  const NamedParameter& member(std::size_t i) const { return members_.at(i); }

  // The values of all elements, where they lie in symmetric memory.
  const SymmetricSpan& symmetric_values() const { return spread_.values; }

  // What this rank keeps and updates: of the flat parameter, and of member i (in its elements).
  Range kept() const;
  Range kept(std::size_t i) const;
  // Where kept(i) begins among the kept elements of all members.
  std::int64_t kept_offset(std::size_t i) const;
  // The member's kept elements: as held, and in full precision (the fp32 master, where there is
  // one), [kept(i).size()].
  optim::Vector values(std::size_t i) const;
  float* master(std::size_t i) const;
  at::Tensor kept_full_precision(std::size_t i) const;
  // Rounds the member's master, where there is one, into its values.
  void round_master(Device& device, std::size_t i) const;

  // All of a member in full precision, [its shape]: a view where this rank has it all. Collective
  // where it does not: sharded_master().
  at::Tensor full_precision(std::size_t i, Group& group) const;
  // Collective where it is sharded: all elements of a member, 1-D, of which each rank has `kept`.
  at::Tensor gather(std::size_t i, const at::Tensor& kept, Group& group) const;
  // The same as full_precision() without memory for all of it: calls `visit` with 1-D pieces in
  // order, each valid during its call.
  using VisitPiece = std::function<void(const at::Tensor& piece)>;
  void visit_full_precision(std::size_t i, Group& group, const VisitPiece& visit) const;
  bool sharded_master() const { return has_master() && spread_.shard.has_value(); }
  // Sets a member in full precision, and what is held to its rounding (of one copy on the host this
  // rank's shard); a graph that was kept over this is LibTorch's error.
  void set_full_precision(std::size_t i, const at::Tensor& values, Device& device);
  // Collective where the masters are sharded. Points the members at their values in full precision,
  // [its shape] each: at copies where they are to be written.
  void show_full_precision(bool to_write, Group& group);
  // Sets the members to what they show now.
  void take_shown(Device& device);
  // Points the members at the values as held.
  void show_held();
  // From now on LibTorch lets nobody read the members, and throws `why`; or lets them again.
  void forbid_reading(const std::string& why) const;
  void allow_reading() const;
  // A member's values, as all ranks read them.
  std::span<const std::byte> bytes_of(std::size_t i) const;
  bool in_host_copy() const { return spread_.host_values.bytes() > 0; }

  // Throws UsageError naming a member whose storage was replaced since it was attached.
  void check_attached() const;

  // Throws UsageError naming a half parameter, which no optimizer takes.
  void check_updatable() const;

  // One copy on the host counts once over all ranks.
  std::int64_t parameter_bytes() const {
    return (in_host_copy() ? kept().size() : layout_.size()) * size_of(dtype_);
  }
  std::int64_t master_bytes() const {
    return has_master() ? kept().size() * size_of(Dtype::f32) : 0;
  }

 private:
  void gather_pieces(std::size_t i, const at::Tensor& kept, Group& group,
                     const VisitPiece& visit) const;
  bool has_master() const { return dtype_ == Dtype::bf16 || dtype_ == Dtype::f16; }
  void attach_values(Device& device);
  // All elements, whether or not the members may be read.
  at::Tensor all_values() const;
  at::Tensor host_values(const std::byte* address, std::int64_t element, std::int64_t count) const;
  at::Tensor values_memory(Device& device) const;

  std::vector<NamedParameter> members_;
  Dtype dtype_;
  Spread spread_;
  FlatLayout layout_;
  at::Tensor initial_;  // [layout.size()] in full precision, until attach_members()
  at::Tensor flat_;     // [layout.size()] of dtype: what members are views of
  at::Tensor own_;      // [kept().size()] of dtype: the kept elements of it, to be written
  at::Tensor master_;   // [kept().size()] f32 with a 16-bit dtype, else undefined
};

// A 1-D tensor over device memory that it owns.
at::Tensor flat_tensor(Device& device, std::int64_t count, Dtype dtype);

}  // namespace lockstep::parallel
