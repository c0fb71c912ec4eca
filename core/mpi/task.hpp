#pragma once
// Stackless coroutines: the control flow of a rank, written as the real program is.

#include "mpi/frame_pool.hpp"

#include <coroutine>
#include <exception>
#include <utility>

namespace lepaute::mpi {

/// A coroutine that starts when it is awaited (or resumed once by the engine) and returns to who awaited it.
class [[nodiscard]] Task {
public:
    struct promise_type {
        std::coroutine_handle<> continuation = std::noop_coroutine();
        std::exception_ptr failure;

        static void* operator new(std::size_t bytes) { return FramePool::of_this_thread().allocate(bytes); }
        static void operator delete(void* frame, std::size_t bytes) noexcept {
            FramePool::of_this_thread().release(frame, bytes);
        }

        Task get_return_object() { return Task(std::coroutine_handle<promise_type>::from_promise(*this)); }
        static std::suspend_always initial_suspend() noexcept { return {}; }
        struct Final {
            static bool await_ready() noexcept { return false; }
            static std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> done) noexcept {
                return done.promise().continuation;
            }
            static void await_resume() noexcept {}
        };
        static Final final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { failure = std::current_exception(); }
    };
    using Handle = std::coroutine_handle<promise_type>;

    Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
    Task(const Task&) = delete;
    Task& operator=(const Task&) = delete;
    Task& operator=(Task&&) = delete;
    ~Task() {
        if (handle_) {
            handle_.destroy();
        }
    }

    [[nodiscard]] Handle handle() const noexcept { return handle_; }
    [[nodiscard]] bool done() const noexcept { return handle_.done(); }
    void rethrow() const {
        if (handle_.promise().failure) {
            std::rethrow_exception(handle_.promise().failure);
        }
    }

    struct Awaiter {
        Handle callee;
        [[nodiscard]] bool await_ready() const noexcept { return callee.done(); }
        [[nodiscard]] std::coroutine_handle<> await_suspend(std::coroutine_handle<> caller) const noexcept {
            callee.promise().continuation = caller;
            return callee;
        }
        void await_resume() const {
            if (callee.promise().failure) {
                std::rethrow_exception(callee.promise().failure);
            }
        }
    };
    Awaiter operator co_await() const noexcept { return {handle_}; }

private:
    explicit Task(Handle handle) noexcept : handle_(handle) {}
    Handle handle_;
};

} // namespace lepaute::mpi
