// Groups of ranks and the collectives between them. No LibTorch here; tensor.h takes tensors.
//
//   lockstep::Group world = lockstep::Group::from_environment();
//   lockstep::Work work = world.all_reduce(std::span(values), {.op = lockstep::ReduceOp::mean});
//   work.wait();
//
// A Group is one process's (in tests: one thread's) handle on an ordered set of ranks. Every rank
// calls the same operations in the same order; ranks that do not get Mismatch, all of them, naming
// both sides. A handle is used by one thread at a time.
//
// Order of addition: every sum is the tree sum(lo,hi) = sum(lo,mid) + sum(mid,hi), mid = lo + the
// largest power of two below hi-lo, over the ranks' values, unless the options name an algorithm of
// which adds_in_tree() (algorithm.h) is false; f32, bf16 and f16 add in fp32, f64 in fp64, and the
// result is rounded to the element type once.
//
// Failure: a GroupError (error.h) from any call or wait(). The group is then poisoned: later calls
// throw GroupPoisoned with the first cause. Every wait ends within the deadline of its peers' last
// sign of life. PeerLost and TimedOut end with a line per rank of the world: what it does, since
// when, and the operations it entered and left last.
#pragma once

#include "lockstep/algorithm.h"
#include "lockstep/dtype.h"
#include "lockstep/error.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace lockstep {

namespace comm {
class Communicator;  // what a Group holds: control words, transport, outstanding works
class Operation;     // one collective in flight
class SharedMemory;  // one segment mapped by all ranks of a group, a part for each
class HostCopy;      // one segment of which all ranks of a group see the same bytes
}  // namespace comm

enum class ReduceOp : std::uint8_t { sum, mean, max, min };

// `count` elements of one dtype anywhere in this process's memory. Does not own.
struct Span {
  void* data = nullptr;
  std::int64_t count = 0;
  Dtype dtype = Dtype::u8;

  Span() = default;
  Span(void* data_, std::int64_t count_, Dtype dtype_)
      : data(data_), count(count_), dtype(dtype_) {}
  template <class T, std::size_t extent>
  Span(
      std::span<T, extent> values)  // NOLINT: implicit on purpose, a std::span says all a Span does
      : data(const_cast<std::remove_const_t<T>*>(values.data())),
        count(static_cast<std::int64_t>(values.size())),
        dtype(DtypeOf<std::remove_const_t<T>>::value) {}
  std::int64_t bytes() const { return count * size_of(dtype); }
};

// Elements of symmetric memory: the same offset of the same segment on every rank. Peers on the
// host read and write it in place, so collectives on it copy nothing. Does not own.
struct SymmetricSpan {
  std::shared_ptr<comm::SharedMemory> memory;
  std::int64_t offset_bytes = 0;
  std::int64_t count = 0;
  Dtype dtype = Dtype::u8;

  std::int64_t bytes() const { return count * size_of(dtype); }
  // This rank's copy.
  void* data() const;
  Span local() const { return {data(), count, dtype}; }
  // Elements [begin, end) of this span.
  SymmetricSpan subspan(std::int64_t begin, std::int64_t end) const;
};

// Memory that all ranks of a group allocated together; freed with the last handle and span of it.
class SymmetricMemory {
 public:
  SymmetricMemory() = default;
  explicit SymmetricMemory(std::shared_ptr<comm::SharedMemory> memory)
      : memory_(std::move(memory)) {}
  std::int64_t bytes() const;
  // Elements at a byte offset (a multiple of 64); throws UsageError outside the allocation.
  SymmetricSpan span(std::int64_t offset_bytes, std::int64_t count, Dtype dtype) const;

 private:
  std::shared_ptr<comm::SharedMemory> memory_;
};

// Bytes that the ranks of a group, all on one host, hold once: each reads them in place. Who writes
// which is for the ranks to agree on; what one wrote others see after a barrier. Freed with the
// last handle.
class HostMemory {
 public:
  HostMemory() = default;
  explicit HostMemory(std::shared_ptr<comm::HostCopy> copy) : copy_(std::move(copy)) {}
  std::int64_t bytes() const;
  // Two addresses of the same bytes; a write through the first is a fault (SIGSEGV).
  const std::byte* readable() const;
  std::byte* writable() const;

 private:
  std::shared_ptr<comm::HostCopy> copy_;
};

// Called on the owner of a range as soon as `count` of its elements, starting at element `begin`
// of part `part`, hold the final result at `values`, while they are still in cache.
using OnReduced = std::function<void(std::size_t part, std::int64_t begin, std::int64_t count,
                                     const void* values)>;

struct ReduceOptions {
  ReduceOp op = ReduceOp::sum;
  // Shown in errors and traces, part of the fingerprint; at most 47 bytes are kept.
  std::string_view name = {};
  // Multiplies the sum before the one rounding, in the type of the addition. Only with sum.
  std::optional<double> scale = {};
  // Rounds the result to this narrower float; the elements keep their dtype. Only for f32.
  std::optional<Dtype> round_to = {};
  // Only for collectives on symmetric memory.
  OnReduced on_reduced = {};
  // Part of the fingerprint. Any but automatic and direct takes symmetric memory as plain memory.
  // UsageError where the algorithm has not this collective, or can't be used on these ranks.
  Algorithm algorithm = Algorithm::automatic;
};

// One span of a coalesced all_reduce.
struct ReducePart {
  SymmetricSpan data;
  std::optional<Dtype> round_to = {};  // as ReduceOptions::round_to
};

// One span of a coalesced reduce_scatter.
struct ScatterPart {
  SymmetricSpan input;
  // This rank's block of the result: elements of the input's dtype, or f32 ones that keep the sums
  // of 16-bit elements unrounded. At its place in the input or apart from it. A null pointer: only
  // on_reduced sees the result, chunk by chunk.
  Span output;
  std::optional<Dtype> round_to = {};  // as ReduceOptions::round_to
};

struct CollectiveOptions {
  std::string_view name = {};
  Algorithm algorithm = Algorithm::automatic;  // as ReduceOptions::algorithm
};

// Payload bytes of this rank in this group so far. In shared memory `received` counts bytes read
// from other ranks' memory and `sent` bytes written into it, or into a message to them; control
// words are not counted.
struct Traffic {
  std::int64_t sent = 0;
  std::int64_t received = 0;
  std::int64_t collectives = 0;  // operations issued (barriers not counted)
};

// A collective in flight: move-only, owns what it needs. wait() returns when the result is valid
// and this rank's buffers may be written again, advancing all outstanding works of the group
// meanwhile. Destroying a Work that was not waited for poisons the group.
class Work {
 public:
  Work() = default;
  explicit Work(std::shared_ptr<comm::Operation> operation);
  Work(Work&&) noexcept;
  Work& operator=(Work&&) noexcept;
  ~Work();

  // Throws PeerLost, Mismatch, TimedOut or GroupPoisoned. A second wait() returns at once.
  void wait();
  // Advances what is ready and says whether wait() would return without waiting.
  bool done();
  bool valid() const { return operation_ != nullptr; }

 private:
  void drop() noexcept;
  std::shared_ptr<comm::Operation> operation_;
};

struct GroupOptions {
  // How long a peer may give no sign of life before TimedOut, counted from its last sign or from
  // the start of the wait, whichever is later; bounds rendezvous and sub-groups too. A process that
  // computes outside of the group gives signs by the processor time it uses; one that is stopped,
  // sleeps, or waits in another group gives none.
  std::chrono::milliseconds deadline = std::chrono::seconds(300);
  // What errors call the group.
  std::string name = "world";
  // The host that each rank is taken to be on, as hierarchical sees it; empty: all are on one.
  std::vector<int> hosts = {};
};

class Group {
 public:
  // The world this process was started in: by `lockstep launch`, torchrun on one host, or alone
  // (then a group of one). Collective. Throws UsageError for what is not supported (several hosts,
  // mpirun, srun) or is incomplete, TimedOut naming the ranks that never came. LOCKSTEP_DEADLINE
  // (seconds) overrides options.deadline.
  static Group from_environment(GroupOptions options = {});
  // A group of this process only.
  static Group alone(GroupOptions options = {});
  // `size` handles for as many threads of this process: tests of collectives.
  static std::vector<Group> of_threads(int size, GroupOptions options = {});

  explicit Group(std::shared_ptr<comm::Communicator> communicator);
  Group(Group&&) noexcept;
  Group& operator=(Group&&) noexcept;
  ~Group();

  int rank() const;
  int size() const;
  const std::string& name() const;
  std::chrono::milliseconds deadline() const;
  Traffic traffic() const;

  // Collective: `bytes` per rank, zeroed, pages populated, aligned to 64. Throws SystemError with
  // the numbers when the host's memory or a cgroup limit can't hold all ranks' parts.
  SymmetricMemory allocate_symmetric(std::int64_t bytes, std::string_view name);

  // Collective: `bytes` for all ranks together, zeroed. Throws as allocate_symmetric().
  HostMemory allocate_host(std::int64_t bytes, std::string_view name);

  // Every rank ends with op over all ranks' elements; in place.
  Work all_reduce(Span data, const ReduceOptions& options = {});
  Work all_reduce(const SymmetricSpan& data, const ReduceOptions& options = {});
  // Several spans as one collective (at most 4): one fingerprint, one wait. Each part says itself
  // what it is rounded to; options.round_to must not be set.
  Work all_reduce(std::span<const ReducePart> parts, const ReduceOptions& options = {});

  // Rank r ends with op over block r of `input`, the r-th of size() equal blocks of ceil(n/size())
  // elements (the last may be short or empty); `output` holds exactly that block and may lie in
  // the input at its place.
  Work reduce_scatter(Span input, Span output, const ReduceOptions& options = {});
  Work reduce_scatter(const SymmetricSpan& input, Span output, const ReduceOptions& options = {});
  // Several spans as one collective, as in all_reduce.
  Work reduce_scatter(std::span<const ScatterPart> parts, const ReduceOptions& options = {});

  // Every rank ends with all blocks; `input` is this rank's block of `output` (blocks as above) and
  // may lie in it at its place. On symmetric memory always in place.
  Work all_gather(Span input, Span output, const CollectiveOptions& options = {});
  Work all_gather(const SymmetricSpan& in_place, const CollectiveOptions& options = {});

  // Every rank ends with root's elements.
  Work broadcast(Span data, int root, const CollectiveOptions& options = {});
  Work broadcast(const SymmetricSpan& data, int root, const CollectiveOptions& options = {});

  // Root ends with op over all ranks' elements; the other ranks' stay as they are.
  Work reduce(Span data, int root, const ReduceOptions& options = {});

  // Root ends with all blocks (as above) in `whole`; `block` is this rank's, and on root may lie in
  // the whole at its place. On other ranks only the whole's count and dtype matter.
  Work gather(Span block, Span whole, int root, const CollectiveOptions& options = {});
  // The reverse: every rank ends with its block of root's whole.
  Work scatter(Span whole, Span block, int root, const CollectiveOptions& options = {});

  // Block q of rank r's `input` (blocks as above, of n elements) ends on rank q as the r-th of P
  // blocks of the size of q's own: `output` has P times as many elements as block r of the input.
  // Both may be the same memory where P divides n.
  Work all_to_all(Span input, Span output, const CollectiveOptions& options = {});

  // Between this rank and another one: what it sends, in the order of the calls, `peer` receives in
  // the order of its calls, with the same dtype, count and name, else Mismatch on every rank. The
  // other ranks take no part, and what these two call besides may come in any order. `data` may be
  // written again when send's Work is done; that may be before `peer` calls recv, or, as with large
  // messages, not. A peer that does not do its part within the deadline, and did not compute either
  // where this host can tell, is TimedOut. Not counted among the traffic's collectives.
  Work send(Span data, int peer, std::string_view name = {});
  Work recv(Span data, int peer, std::string_view name = {});

  // Returns when every rank has entered.
  void barrier(const CollectiveOptions& options = {});

  // Collective: ranks of equal color form a group, ordered by (key, rank). A negative color joins
  // none.
  std::optional<Group> split(int color, int key);
  // Collective: another group of the same ranks in the same order.
  Group duplicate();

  // Advances all outstanding works that can go on, without waiting.
  void progress();

  // Keeps this rank's last 1,000 operations, of this group and of all that share a world with it by
  // split() and duplicate(), in `folder`/rank-R.flight from now on, R being the rank in the world.
  // The file is mapped and thus current whatever ends the process; `lockstep doctor --flight
  // folder` reads it. Not collective. LOCKSTEP_FLIGHT does the same from the start. Throws
  // SystemError when the file can't be made, UsageError when another folder is being recorded to.
  void record_flight(const std::string& folder);
  // Where this rank records; empty: nowhere.
  std::string flight_folder() const;
  // Says which training step the operations from now on belong to, for errors and the recorder.
  void mark_step(std::int64_t step);

 private:
  std::shared_ptr<comm::Communicator> communicator_;
};

}  // namespace lockstep
