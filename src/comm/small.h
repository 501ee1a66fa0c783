// Collectives on a few KB anywhere in memory: every rank copies its input into its slot, and when
// all have, takes what it needs from everybody's slots.
//
// Cost per rank: two steps, one round of sequence words between them; all_reduce reads P·X
// ((P-1)·X received), reduce_scatter P·b, all_gather P·b, broadcast X. Adds in the tree for every
// P.
//
// Two sets of slots alternate: whoever fills a set for the second time has seen everybody fill the
// other one, which each rank does after it last read this one.
#pragma once

#include "comm/control.h"
#include "comm/operation.h"
#include "comm/reduction.h"

namespace lockstep::comm {

class SmallOperation : public Operation {
 public:
  std::int64_t steps() const override { return 2; }
  Gate gate(std::int64_t step) const override { return step == 0 ? Gate::open : Gate::stepped; }
  Ends ends() const override { return Ends::alone; }
  bool run(std::int64_t step, Traffic& traffic) override;

 protected:
  SmallOperation(const Fingerprint& fingerprint, Control& control);
  // Whether this rank contributes, and what.
  virtual Span input() const = 0;
  // Reads the slots; returns the bytes read from others'.
  virtual std::int64_t take() = 0;

  const std::byte* slot(int rank) const { return control_.slot(slots_, rank); }
  int rank() const { return control_.rank(); }
  int ranks() const { return control_.ranks(); }

 private:
  Control& control_;
  int slots_ = 0;
};

class SmallAllReduce : public SmallOperation {
 public:
  SmallAllReduce(const Fingerprint& fingerprint, Control& control, Span data,
                 const Reduction& reduction)
      : SmallOperation(fingerprint, control), data_(data), reduction_(reduction) {}

 protected:
  Span input() const override { return data_; }
  std::int64_t take() override;

 private:
  Span data_;
  Reduction reduction_;
};

class SmallReduceScatter : public SmallOperation {
 public:
  SmallReduceScatter(const Fingerprint& fingerprint, Control& control, Span input, Span output,
                     const Reduction& reduction)
      : SmallOperation(fingerprint, control),
        input_(input),
        output_(output),
        reduction_(reduction) {}

 protected:
  Span input() const override { return input_; }
  std::int64_t take() override;

 private:
  Span input_;
  Span output_;
  Reduction reduction_;
};

class SmallAllGather : public SmallOperation {
 public:
  SmallAllGather(const Fingerprint& fingerprint, Control& control, Span input, Span output)
      : SmallOperation(fingerprint, control), input_(input), output_(output) {}

 protected:
  Span input() const override { return input_; }
  std::int64_t take() override;

 private:
  Span input_;
  Span output_;
};

class SmallBroadcast : public SmallOperation {
 public:
  SmallBroadcast(const Fingerprint& fingerprint, Control& control, Span data, int root)
      : SmallOperation(fingerprint, control), data_(data), root_(root) {}

 protected:
  Span input() const override { return rank() == root_ ? data_ : Span(); }
  std::int64_t take() override;

 private:
  Span data_;
  int root_;
};

}  // namespace lockstep::comm
