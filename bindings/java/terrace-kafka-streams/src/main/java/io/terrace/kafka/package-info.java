/**
 * State stores of Kafka Streams on Terrace.
 *
 * <p>{@link io.terrace.kafka.TerraceDslStoreSuppliers} moves the stores of a whole application
 * with one line of configuration; {@link io.terrace.kafka.TerraceStores} has suppliers for stores
 * that are named in the topology.
 *
 * <p>Writes stay in memory until Kafka Streams commits the store; then data, changelog offsets and
 * position go into the database in one batch. A process that dies leaves what its last commit said.
 */
package io.terrace.kafka;
