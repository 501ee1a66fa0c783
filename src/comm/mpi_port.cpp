#include "comm/mpi_port.h"

#include "base/invariant.h"
#include "comm/mpi_library.h"
#include "lockstep/error.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep::comm {
namespace {

// What stands for a handle. Open MPI: the addresses of objects that the library exports.
struct OpenMpiAbi {
  using Communicator = void*;
  using Datatype = void*;
  using Errhandler = void*;
  using Request = void*;
  static Communicator world(const MpiLibrary& mpi) { return mpi.symbol("ompi_mpi_comm_world"); }
  static Datatype byte(const MpiLibrary& mpi) { return mpi.symbol("ompi_mpi_byte"); }
  static Errhandler errors_return(const MpiLibrary& mpi) {
    return mpi.symbol("ompi_mpi_errors_return");
  }
  static void* status_ignore() { return nullptr; }
  static int tag(const std::array<int, 16>& status) { return status[1]; }
};

// MPICH's family: fixed numbers.
struct MpichAbi {
  using Communicator = int;
  using Datatype = int;
  using Errhandler = int;
  using Request = int;
  static Communicator world(const MpiLibrary&) { return 0x44000000; }
  static Datatype byte(const MpiLibrary&) { return 0x4c00010d; }
  static Errhandler errors_return(const MpiLibrary&) { return 0x54000001; }
  static void* status_ignore() { return reinterpret_cast<void*>(1); }
  static int tag(const std::array<int, 16>& status) { return status[3]; }
};

// In both.
constexpr int kFunneled = 1;  // MPI_THREAD_FUNNELED
constexpr int kAnyTag = -1;   // MPI_ANY_TAG

// Beyond every channel of a Port.
constexpr int kFarewell = Port::kMostChannels;

// The functions in use, with one ABI's types.
template <class Abi>
class Mpi {
 public:
  using Communicator = typename Abi::Communicator;
  using Request = typename Abi::Request;

  Mpi() {
    int initialised = 0;
    check(call<int(int*)>("MPI_Initialized")(&initialised), "MPI_Initialized");
    int finalised = 0;
    check(call<int(int*)>("MPI_Finalized")(&finalised), "MPI_Finalized");
    if (finalised != 0) {
      throw UsageError(
          "MPI was finalised in this process and can't start again: make the world once");
    }
    if (initialised == 0) {
      int provided = 0;
      check(call<int(int*, char***, int, int*)>("MPI_Init_thread")(nullptr, nullptr, kFunneled,
                                                                   &provided),
            "MPI_Init_thread");
      ours_ = true;
    }
    const Communicator world = Abi::world(library_);
    check(call<int(Communicator, Communicator*)>("MPI_Comm_dup")(world, &communicator_),
          "MPI_Comm_dup");
    check(call<int(Communicator, typename Abi::Errhandler)>("MPI_Comm_set_errhandler")(
              communicator_, Abi::errors_return(library_)),
          "MPI_Comm_set_errhandler");
    check(call<int(Communicator, int*)>("MPI_Comm_rank")(communicator_, &rank_), "MPI_Comm_rank");
    check(call<int(Communicator, int*)>("MPI_Comm_size")(communicator_, &size_), "MPI_Comm_size");
    isend_ = call<Isend>("MPI_Isend");
    irecv_ = call<Irecv>("MPI_Irecv");
    test_ = call<Test>("MPI_Test");
    cancel_ = call<int(Request*)>("MPI_Cancel");
    free_ = call<int(Request*)>("MPI_Request_free");
  }
  ~Mpi() {
    if (abandoned_) {
      return;
    }
    try {
      take_leave();
    } catch (const Error&) {
      return;  // a peer is gone or has given up: mpirun ends the job
    }
    call<int(Communicator*)>("MPI_Comm_free")(&communicator_);
    if (ours_) {
      call<int()>("MPI_Finalize")();
    }
  }
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::string& version() const { return library_.version(); }
  // Peers that take leave meanwhile must not wait for this rank.
  void abandon() noexcept {
    if (std::exchange(abandoned_, true)) {
      return;
    }
    static constexpr std::byte kFailed{1};
    for (int peer = 0; peer < size_; ++peer) {
      try {
        if (peer != rank_) {
          send(peer, kFarewell, std::span(&kFailed, 1));
        }
      } catch (const Error&) {
        continue;  // it is gone, and waits for nobody
      }
    }
  }

  Request send(int peer, int channel, std::span<const std::byte> bytes) {
    Request request{};
    check(isend_(bytes.data(), count_of(bytes.size()), Abi::byte(library_), peer, channel,
                 communicator_, &request),
          "MPI_Isend");
    return request;
  }
  Request receive(int peer, int channel, std::span<std::byte> bytes) {
    Request request{};
    check(irecv_(bytes.data(), count_of(bytes.size()), Abi::byte(library_), peer, channel,
                 communicator_, &request),
          "MPI_Irecv");
    return request;
  }
  bool done(Request& request) {
    int flag = 0;
    check(test_(&request, &flag, Abi::status_ignore()), "MPI_Test");
    return flag != 0;
  }
  void cancel(Request& request) noexcept {
    cancel_(&request);
    free_(&request);
  }

 private:
  static constexpr std::chrono::microseconds kPause{50};

  using Isend = int(const void*, int, typename Abi::Datatype, int, int, Communicator, Request*);
  using Irecv = int(void*, int, typename Abi::Datatype, int, int, Communicator, Request*);
  using Test = int(Request*, int*, void*);

  template <class Function>
  Function* call(const char* name) const {
    return library_.function<Function>(name);
  }
  void finish(Request& request) {
    while (!done(request)) {
      std::this_thread::sleep_for(kPause);
    }
  }
  // What peers have said that nobody listens to any more (their last words, of groups that this
  // rank has closed) must be received all the same: MPICH ends a job that frees a communicator with
  // an unmatched message. One sender's messages are matched in their order, so its farewell is its
  // last. Waits for every rank to come here, as MPI_Finalize would: mpirun sees to those that die,
  // and one that abandoned the job says so, which ends the wait with an error.
  void take_leave() {
    std::vector<Request> farewells;
    std::vector<int> present;
    for (int peer = 0; peer < size_; ++peer) {
      if (peer != rank_) {
        farewells.push_back(send(peer, kFarewell, {}));
        present.push_back(peer);
      }
    }
    while (!present.empty()) {
      std::erase_if(present, [this](int peer) { return has_left(peer); });
      std::this_thread::sleep_for(kPause);
    }
    std::ranges::for_each(farewells, [this](Request& farewell) { finish(farewell); });
  }
  // Receives what has come from `peer`, up to its farewell.
  bool has_left(int peer) {
    while (true) {
      int here = 0;
      std::array<int, 16> status{};  // larger than either library's
      check(call<int(int, int, Communicator, int*, void*)>("MPI_Iprobe")(
                peer, kAnyTag, communicator_, &here, status.data()),
            "MPI_Iprobe");
      if (here == 0) {
        return false;
      }
      int bytes = 0;
      check(call<int(const void*, typename Abi::Datatype, int*)>("MPI_Get_count")(
                status.data(), Abi::byte(library_), &bytes),
            "MPI_Get_count");
      std::vector<std::byte> unheard(static_cast<std::size_t>(bytes));
      Request request = receive(peer, Abi::tag(status), unheard);
      finish(request);
      if (Abi::tag(status) == kFarewell) {
        if (bytes > 0) {
          throw SystemError("rank " + std::to_string(peer) + " gave the job up");
        }
        return true;
      }
    }
  }
  static int count_of(std::size_t bytes) {
    LOCKSTEP_INVARIANT(static_cast<std::int64_t>(bytes), <=, Port::kMostBytes);
    return static_cast<int>(bytes);
  }
  void check(int code, const char* what) const {
    if (code == 0) {
      return;
    }
    std::array<char, 1024> text{};
    int length = 0;
    call<int(int, char*, int*)>("MPI_Error_string")(code, text.data(), &length);
    throw SystemError(std::string(what) + " (" + library_.version() + "): " + text.data());
  }

  MpiLibrary library_;
  Communicator communicator_{};
  int rank_ = 0;
  int size_ = 1;
  bool ours_ = false;
  bool abandoned_ = false;
  Isend* isend_ = nullptr;
  Irecv* irecv_ = nullptr;
  Test* test_ = nullptr;
  int (*cancel_)(Request*) = nullptr;
  int (*free_)(Request*) = nullptr;
};

template <class Abi>
class MpiTransfer final : public Port::Transfer {
 public:
  MpiTransfer(std::shared_ptr<Mpi<Abi>> mpi, typename Abi::Request request)
      : mpi_(std::move(mpi)), request_(request) {}
  bool done() override {
    done_ = done_ || mpi_->done(request_);
    return done_;
  }
  void cancel() noexcept override {
    if (!done_) {
      mpi_->cancel(request_);
      done_ = true;
    }
  }

 private:
  std::shared_ptr<Mpi<Abi>> mpi_;
  typename Abi::Request request_;
  bool done_ = false;
};

template <class Abi>
class MpiPort final : public Port {
 public:
  int rank() const override { return mpi_->rank(); }
  int size() const override { return mpi_->size(); }
  const std::string& library() const override { return mpi_->version(); }
  std::unique_ptr<Transfer> send(int peer, int channel, std::span<const std::byte> bytes) override {
    return std::make_unique<MpiTransfer<Abi>>(mpi_, mpi_->send(peer, channel, bytes));
  }
  std::unique_ptr<Transfer> receive(int peer, int channel, std::span<std::byte> bytes) override {
    return std::make_unique<MpiTransfer<Abi>>(mpi_, mpi_->receive(peer, channel, bytes));
  }
  void abandon() noexcept override { mpi_->abandon(); }

 private:
  std::shared_ptr<Mpi<Abi>> mpi_ = std::make_shared<Mpi<Abi>>();
};

}  // namespace

std::shared_ptr<Port> port_of_mpi() {
  switch (MpiLibrary().abi()) {
    case MpiLibrary::Abi::open_mpi:
      return std::make_shared<MpiPort<OpenMpiAbi>>();
    case MpiLibrary::Abi::mpich:
      return std::make_shared<MpiPort<MpichAbi>>();
  }
  return nullptr;
}

}  // namespace lockstep::comm
