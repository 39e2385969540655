// Scratch memory: a matrix that starts at zero, on a cache line, and checks its bounds in debug builds.
#pragma once
#include <cassert>
#include <cstring>
#include <new>

#include "engine.hpp"

namespace tkmeans::TKM_SET {

constexpr Index line_bytes = 64;

constexpr Index round_up(Index value, Index multiple) { return (value + multiple - 1) / multiple * multiple; }
constexpr Index least(Index a, Index b) { return a < b ? a : b; }
constexpr Index most(Index a, Index b) { return a < b ? b : a; }

template <class T>
class Grid {
 public:
    Grid() = default;
    Grid(Index rows, Index columns) { resize(rows, columns); }
    ~Grid() { release(); }
    Grid(const Grid&) = delete;
    Grid& operator=(const Grid&) = delete;

    // All zero afterwards, whatever it held.
    void resize(Index rows, Index columns) {
        release();
        data_ = static_cast<T*>(::operator new(bytes(rows, columns), std::align_val_t(line_bytes)));
        rows_ = rows;
        columns_ = columns;
        clear();
    }
    void clear() { std::memset(static_cast<void*>(data_), 0, bytes(rows_, columns_)); }

    T* operator[](Index row) {
        assert(0 <= row && row < rows_);
        return data_ + row * columns_;
    }
    const T* operator[](Index row) const {
        assert(0 <= row && row < rows_);
        return data_ + row * columns_;
    }
    Index rows() const { return rows_; }
    Index columns() const { return columns_; }

 private:
    static std::size_t bytes(Index rows, Index columns) { return sizeof(T) * static_cast<std::size_t>(rows * columns); }
    void release() {
        if (data_) ::operator delete(data_, std::align_val_t(line_bytes));
        data_ = nullptr;
    }

    T* data_ = nullptr;
    Index rows_ = 0, columns_ = 0;
};

// Some columns of a grid, from `offset` on.
template <class T>
class View {
 public:
    View(Grid<T>& grid, Index offset) : first_(grid[0] + offset), rows_(grid.rows()), stride_(grid.columns()) {}

    T* operator[](Index row) const {
        assert(0 <= row && row < rows_);
        return first_ + row * stride_;
    }

 private:
    T* first_;
    Index rows_, stride_;
};

// A grid of a single row.
template <class T>
class Line {
 public:
    Line() = default;
    explicit Line(Index size) : grid_(1, size) {}
    Index size() const { return grid_.columns(); }

    T& operator[](Index i) {
        assert(0 <= i && i < grid_.columns());
        return grid_[0][i];
    }
    const T& operator[](Index i) const {
        assert(0 <= i && i < grid_.columns());
        return grid_[0][i];
    }

 private:
    Grid<T> grid_;
};

}  // namespace tkmeans::TKM_SET
