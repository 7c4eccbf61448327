// Async<T>: a coroutine that never blocks. run_blocking is the only bridge to code that may.
#pragma once

#include <exception>
#include <type_traits>
#include <utility>

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/background_pool.h"
#include "base/result.h"

namespace orrery {

namespace asio = boost::asio;

template <typename T = void>
using Async = asio::awaitable<Result<T>>;

/// Hands `work` to the pool, of either kind.
template <typename Work>
void post_blocking(asio::thread_pool& pool, Work work) {
  asio::post(pool, std::move(work));
}
template <typename Work>
void post_blocking(BackgroundPool& pool, Work work) {
  pool.post(std::move(work));
}
template <typename Work>
void post_blocking(const BackgroundPool::Lane& lane, Work work) {
  lane.post(std::move(work));
}

/// Runs `work` (a callable that may block) on `pool` and resumes the caller on its own executor
/// with what it returned. `work` must not throw.
template <typename Pool, typename Work>
asio::awaitable<std::invoke_result_t<Work>> run_blocking(Pool& pool, Work work) {
  using Value = std::invoke_result_t<Work>;
  co_return co_await asio::async_initiate<decltype(asio::use_awaitable), void(Value)>(
      [&pool](auto handler, Work task) {
        auto executor = asio::get_associated_executor(handler);
        post_blocking(pool, [handler = std::move(handler), task = std::move(task),
                             executor = std::move(executor)]() mutable {
          asio::post(executor, [handler = std::move(handler), value = task()]() mutable {
            std::move(handler)(std::move(value));
          });
        });
      },
      asio::use_awaitable, std::move(work));
}

}  // namespace orrery
