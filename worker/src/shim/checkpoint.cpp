// Activation checkpointing in the form of torch.utils.checkpoint(use_reentrant=False): what the
// operators of a block save for the backward pass is replaced by a mark, and the first mark that
// the backward pass asks for runs the block again, up to the last tensor that is needed.
//
// Python plants the marks through hooks of its own autograd engine. So does this file: it makes a
// subclass of the engine the default one.
#include "shim.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>

using namespace vramfit;

namespace {

// Runs the block on an input that it owns from then on; returns 0, or 1 after setting `failure`.
using Run = int (*)(void* block, at::Tensor* input, void* failure);
using Release = void (*)(void* block);

// Ends a recomputation early. It passes through operators, so it has to be an exception.
struct Enough : std::exception {
  const char* what() const noexcept override {
    return "the block has been recomputed as far as needed";
  }
};

class RandomState {
 public:
  explicit RandomState(at::Device device) {
    save(at::Device(at::kCPU));
    if (!device.is_cpu()) {
      save(device);
    }
  }

  void restore() const {
    for (auto [generator, state] : states_) {
      const std::lock_guard<std::mutex> lock(generator.mutex());
      generator.set_state(state);
    }
  }

 private:
  void save(at::Device device) {
    at::Generator generator = at::globalContext().defaultGenerator(device);
    const std::lock_guard<std::mutex> lock(generator.mutex());
    states_.emplace_back(generator, generator.get_state());
  }

  std::vector<std::pair<at::Generator, at::Tensor>> states_;
};

struct AutocastState {
  explicit AutocastState(at::DeviceType type)
      : device(type),
        enabled(at::autocast::is_autocast_enabled(type)),
        dtype(at::autocast::get_autocast_dtype(type)) {}

  void restore() const {
    at::autocast::set_autocast_enabled(device, enabled);
    at::autocast::set_autocast_dtype(device, dtype);
  }

  at::DeviceType device;
  bool enabled;
  at::ScalarType dtype;
};

// State of the thread as it was in the forward pass, for the time of a recomputation.
class AsInForward {
 public:
  AsInForward(const RandomState& random, const AutocastState& autocast, at::Device device)
      : random_(device), autocast_(device.type()), grad_(true) {
    random.restore();
    autocast.restore();
    at::autocast::increment_nesting();
  }

  ~AsInForward() {
    if (at::autocast::decrement_nesting() == 0) {
      at::autocast::clear_cache();
    }
    autocast_.restore();
    random_.restore();
  }

 private:
  RandomState random_;
  AutocastState autocast_;
  c10::AutoGradMode grad_;
};

// What stands in the place of one saved tensor. The recomputed tensor waits here until it is asked
// for, one for each backward pass over the graph.
struct Mark {
  std::map<int, at::Tensor> recomputed;
};

struct Frame;

// One recomputation of a frame for one backward pass.
struct Recomputation {
  const Frame& frame;
  int task;
  size_t saved = 0;
  bool enough = false;
};

thread_local std::shared_ptr<Frame> recording;
thread_local Recomputation* recomputation = nullptr;

// One checkpointed block of one forward pass.
struct Frame {
  Frame(const at::Tensor& block_input, Run run_block, Release release_block, void* rust_block)
      : input(block_input),
        random(input.device()),
        autocast(input.device().type()),
        run(run_block),
        release(release_block),
        block(rust_block) {}

  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  ~Frame() {
    release(block);
  }

  void recompute(int task) {
    const AsInForward state(random, autocast, input.device());
    Recomputation pass{*this, task};
    std::string failure;
    recomputation = &pass;
    const int failed = run(block, new at::Tensor(input), &failure);
    recomputation = nullptr;
    if (failed != 0 && !pass.enough) {
      throw std::runtime_error(failure);
    }
    tasks.insert(task);
  }

  at::Tensor input;
  RandomState random;
  AutocastState autocast;
  Run run;
  Release release;
  void* block;
  std::vector<std::weak_ptr<Mark>> marks;
  std::set<int> tasks;
};

class LeaveMark : public torch::autograd::SavedVariableHooks {
 public:
  explicit LeaveMark(std::shared_ptr<Frame> frame) : frame_(std::move(frame)) {}

  void call_pack_hook(const at::Tensor&) override {
    mark_ = std::make_shared<Mark>();
    frame_->marks.push_back(mark_);
  }

  at::Tensor call_unpack_hook() override {
    const int task = torch::autograd::get_current_graph_task_id();
    if (frame_->tasks.count(task) == 0) {
      frame_->recompute(task);
    }
    const auto found = mark_->recomputed.find(task);
    if (found == mark_->recomputed.end()) {
      throw std::runtime_error("a checkpointed block saved less when it was computed again");
    }
    at::Tensor tensor = std::move(found->second);
    mark_->recomputed.erase(found);
    return tensor;
  }

 private:
  std::shared_ptr<Frame> frame_;
  std::shared_ptr<Mark> mark_;
};

class FillMark : public torch::autograd::SavedVariableHooks {
 public:
  void call_pack_hook(const at::Tensor& tensor) override {
    tensor_ = tensor.requires_grad() ? tensor.detach() : tensor;
    auto& pass = *recomputation;
    const auto& marks = pass.frame.marks;
    if (pass.saved < marks.size()) {
      if (const auto mark = marks[pass.saved].lock()) {
        mark->recomputed[pass.task] = tensor_;
      }
      ++pass.saved;
    }
    if (pass.saved == marks.size()) {
      pass.enough = true;
      throw Enough();
    }
  }

  at::Tensor call_unpack_hook() override {
    return tensor_;
  }

 private:
  at::Tensor tensor_;
};

class HookedEngine : public torch::autograd::Engine {
 public:
  static torch::autograd::Engine& get() {
    // Never destroyed: its threads may outlive main.
    static auto* const engine = new HookedEngine();
    return *engine;
  }

  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks()
      override {
    if (recomputation != nullptr) {
      return std::make_unique<FillMark>();
    }
    if (recording != nullptr) {
      return std::make_unique<LeaveMark>(recording);
    }
    return nullptr;
  }
};

}  // namespace

extern "C" {

// To be called once, before the first backward pass.
int vf_checkpoint_install() {
  return guarded([] { torch::autograd::set_default_engine_stub(&HookedEngine::get); });
}

// From here to vf_checkpoint_end what this thread's operators save belongs to a new frame. Takes
// over `block` in any case.
int vf_checkpoint_begin(const at::Tensor* input, Run run, Release release, void* block) {
  const int failed = guarded([&] {
    recording = std::make_shared<Frame>(*input, run, release, block);
    block = nullptr;
  });
  if (block != nullptr) {
    release(block);
  }
  return failed;
}

void vf_checkpoint_end() {
  recording.reset();
}

// For a block that failed: keeps the reason for whoever runs it.
void vf_checkpoint_explain(void* failure, const char* text, size_t size) {
  guarded([&] { static_cast<std::string*>(failure)->assign(text, size); });
}
}
